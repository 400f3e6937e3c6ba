// A client of "Resumable Uploads for HTTP" for browsers and Node. onward.d.ts describes what it exports.

/** The version of this module, which is also a part of its URL. */
export const version = "0.2.0";
