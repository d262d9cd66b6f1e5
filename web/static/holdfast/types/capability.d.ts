/**
 * @param {{userAgent: string, userAgentData?: {brands: {brand: string, version: string}[]}}} browser `navigator`, or a stand-in
 * @returns {boolean}
 */
export function canMoveLiveConnection(browser: {
    userAgent: string;
    userAgentData?: {
        brands: {
            brand: string;
            version: string;
        }[];
    } | undefined;
}): boolean;
