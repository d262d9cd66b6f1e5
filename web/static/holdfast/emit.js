/**
 * @param {EventTarget} target
 * @param {string} type
 * @param {unknown} [detail]
 */
export function emit(target, type, detail) {
  target.dispatchEvent(new CustomEvent(type, { detail }));
}

/**
 * @param {EventTarget} target
 * @param {string} type
 * @param {(detail: any) => void} handler
 */
export function on(target, type, handler) {
  target.addEventListener(type, (event) => handler(/** @type {CustomEvent} */ (event).detail));
}
