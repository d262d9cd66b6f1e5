// Where the site begins: a proxy may serve it under a path of its host.

/** The address of index.html's directory, such as https://host/ or https://host/call/. */
export const site = new URL('../', import.meta.url);

/** @param {string} path under api/v1/ */
export const api = (path) => new URL(`api/v1/${path}`, site).href;
