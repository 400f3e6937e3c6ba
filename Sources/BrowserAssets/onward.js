// A client of "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload, interop version 8) for browsers and Node,
// without dependencies. onward.d.ts documents what it exports. The first half decides, without input and output; the
// second half sends requests, reads files, and remembers uploads.
//
// Browsers hide the interim response 104, which announces the URL of an upload. So an empty request creates the upload,
// and its final response has the URL. Then PATCH requests send the content.

/** The version of this module, which is also a part of its URL. */
export const version = "0.2.0";

/** Content of a PUT up to this size is sent in one request: to repeat it costs less than to create an upload first. */
const SINGLE_REQUEST_SIZE = 256 * 1024;
/** Uploads that have a connection at the same time. */
const MAX_CONNECTIONS = 4;
/** The maximum delays before the first, second and further attempts in milliseconds; the last one is used for all later
 * attempts. */
const DELAYS = [0, 1000, 2000, 4000, 8000, 15000, 30000];
const MAX_RETRY_AFTER = 600_000;
/** While the browser reports that it is offline, an attempt is made after this time, because the report can be wrong. */
const OFFLINE_RETRY = 30_000;
/** Milliseconds after which the number of sent bytes is remembered again. */
const SAVE_INTERVAL = 5000;
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;
const INTEROP_VERSION = 8;
const VERSION_FIELD = { "Upload-Draft-Interop-Version": String(INTEROP_VERSION) };

export class UploadError extends Error {
  /**
   * @param {string} code one of `UploadErrorCode`
   * @param {string} message
   * @param {{ status?: number, problem?: object | null, isResumable?: boolean, cause?: unknown }} [details]
   */
  constructor(code, message, { status = 0, problem = null, isResumable = false, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "UploadError";
    this.code = code;
    this.status = status;
    this.problem = problem;
    this.isResumable = isResumable;
  }

  /** The error of a response. */
  static of(code, response, isResumable = false) {
    const { status, problem } = response;
    const message = problem?.detail ?? problem?.title ?? `the server responded with status ${status}`;
    return new UploadError(code, message, { status, problem, isResumable });
  }
}

// MARK: Fields (RFC 9651). A malformed field counts as absent.

const BARE_ITEM = String.raw`(?:-?(?:\d{1,12}\.\d{1,3}|\d{1,15})|"(?:[ !#-\[\]-~]|\\["\\])*"|[A-Za-z*][\w!#$%&'*+.^|~:/\x60-]*` +
  String.raw`|:[A-Za-z0-9+/=]*:|\?[01]|@-?\d{1,15}|%"(?:[ !#-$&-~]|%[0-9a-f]{2})*")`;
const KEY = String.raw`[a-z*][a-z0-9_.*-]*`;
const PARAMETERS = String.raw`(?:; *${KEY}(?:=${BARE_ITEM})?)*`;
const INNER_LIST = String.raw`\( *(?:${BARE_ITEM}${PARAMETERS}(?: +|(?=\))))*\)`;
const MEMBER = new RegExp(`(${KEY})(?:=(${BARE_ITEM}|${INNER_LIST}))?${PARAMETERS}`, "y");
const INTEGER_FIELD = new RegExp(`^ *(\\d{1,15})${PARAMETERS} *$`);
const BOOLEAN_FIELD = new RegExp(`^ *\\?([01])${PARAMETERS} *$`);

/** A non-negative Integer; null if it is absent or malformed. */
export function parseInteger(value) {
  const found = INTEGER_FIELD.exec(value ?? "");
  return found ? Number(found[1]) : null;
}

/** A Boolean; null if it is absent or malformed. */
export function parseBoolean(value) {
  const found = BOOLEAN_FIELD.exec(value ?? "");
  return found ? found[1] === "1" : null;
}

/** The members of a Dictionary as text without parameters; null if it is absent or malformed. */
export function parseDictionary(value) {
  const text = (value ?? "").replace(/^ +| +$/g, "");
  const members = new Map();
  let position = 0;
  while (position < text.length) {
    MEMBER.lastIndex = position;
    const found = MEMBER.exec(text);
    if (!found) return null;
    members.delete(found[1]);
    members.set(found[1], found[2] ?? "?1");
    const separator = /[ \t]*,[ \t]*/y;
    separator.lastIndex = position = MEMBER.lastIndex;
    if (position === text.length) break;
    if (!separator.test(text) || separator.lastIndex === text.length) return null;
    position = separator.lastIndex;
  }
  return members.size > 0 ? members : null;
}

/**
 * The limits in `Upload-Limit` (draft section 4.1.4); null if the field is absent or malformed. A known limit that is not
 * an integer makes the field malformed.
 */
export function parseLimits(value) {
  const members = parseDictionary(value);
  if (!members) return null;
  const limits = {};
  for (const key of ["max-size", "min-size", "max-append-size", "min-append-size", "max-age"]) {
    const text = members.get(key);
    if (text === undefined) continue;
    if (!/^\d{1,15}$/.test(text)) return null;
    limits[key.replace(/-(.)/g, (_, letter) => letter.toUpperCase())] = Number(text);
  }
  return limits;
}

/** SHA-256 in `Repr-Digest` (RFC 9530), in hexadecimal; null if it is absent. */
export function parseDigest(value) {
  const text = parseDictionary(value)?.get("sha-256");
  if (!text?.startsWith(":")) return null;
  try {
    return hexadecimal(Uint8Array.from(atob(text.slice(1, -1)), (letter) => letter.charCodeAt(0)));
  } catch {
    return null;
  }
}

const hexadecimal = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** `Content-Disposition` with a file name (RFC 8187). */
export function disposition(name) {
  // Half of a surrogate pair cannot be encoded.
  const wellFormed = name.replace(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, "\uFFFD");
  const encoded = encodeURIComponent(wellFormed).replace(/['()*]/g, (letter) => "%" + letter.charCodeAt(0).toString(16));
  return `inline; filename*=UTF-8''${encoded}`;
}

/** The delay that `Retry-After` requests, in milliseconds; null if it is absent or malformed. */
export function retryAfter(value, now) {
  const text = (value ?? "").trim();
  const delay = /^\d+$/.test(text) ? Number(text) * 1000 : /^[A-Z][a-z]/.test(text) ? Date.parse(text) - now : NaN;
  return Number.isNaN(delay) ? null : Math.min(Math.max(delay, 0), MAX_RETRY_AFTER);
}

/**
 * The delay before an attempt in milliseconds: a random part of the maximum, so that the clients of a restarted server do
 * not reconnect at the same time. After a response with an error it is at least half of the maximum.
 */
export function retryDelay(attempt, random, isRefused) {
  const longest = DELAYS[Math.min(attempt, DELAYS.length) - 1];
  return isRefused ? (longest || DELAYS[1]) * (0.5 + random / 2) : longest * random;
}

/** One set of fields; a later one replaces those with the same name, in whatever case. */
export function mergedFields(...sets) {
  const fields = new Map();
  for (const set of sets) {
    for (const [name, value] of Object.entries(set ?? {})) fields.set(name.toLowerCase(), [name, value]);
  }
  return Object.fromEntries(fields.values());
}

const isSuccessful = (status) => status >= 200 && status < 300;
const isUnauthorized = (status) => [401, 403, 407].includes(status);
const isGone = (status) => status === 404 || status === 410;
const isTransient = (status) =>
  status >= 500 ? status !== 501 && status !== 505 : [408, 423, 425, 429].includes(status);
const isComplete = (response) => parseBoolean(response.headers["upload-complete"]);

/**
 * Whether a file is sent in one request. A short PUT has the same effect if it is sent twice. With `If-None-Match: *` a
 * repetition can fail because the first request had its effect, which can be verified; with other conditions it cannot.
 */
const isShort = (method, size, fields) =>
  method === "PUT" && size <= SINGLE_REQUEST_SIZE &&
    Object.entries(fields ?? {}).every(([name, value]) => !/^if-/i.test(name) || isForNewNames(name, value));
const isForNewNames = (name, value) => /^if-none-match$/i.test(name) && value.trim() === "*";

/** How many of the remaining bytes the next request sends. The server's minimum overrides the caller's maximum. */
export function appendCount(remaining, { own, learned, limits }) {
  const server = Math.min(limits.maxAppendSize ?? Infinity, learned ?? Infinity);
  const requested = Math.max(own ?? Infinity, Math.min(limits.minAppendSize ?? 0, server));
  return Math.min(remaining, Math.max(1, Math.min(server, requested)));
}

// MARK: The state of an upload

/**
 * The decisions of one upload: `next` returns the next step, and `responded` or `interrupted` receives the result of a
 * request. It does no input or output.
 *
 * A request has `kind`, `method`, `url`, `fields`, and its content as the range from `start` to `end` of the file (null if
 * it has none); `completes`: whether it completes the upload. A response has `status`, `headers`, `problem` and `url`.
 */
export class UploadMachine {
  /**
   * @param {{ target: string, method: string, size: number, fields?: Record<string, string>, retries?: number,
   *   appendSize?: number, canRefresh?: boolean, limits?: object | null, random?: () => number }} intent
   *   `limits`: those of the target, if they are known already.
   * @param {{ url: string, acknowledged: number } | null} [resumption]
   */
  constructor(intent, resumption = null) {
    this.intent = { fields: {}, retries: 8, random: Math.random, limits: null, ...intent };
    this.resumption = resumption;
    this.acknowledged = resumption?.acknowledged ?? 0;
    this.limits = this.intent.limits ?? {};
    this.learnedMax = null;
    this.attempts = 0;
    this.wait = null;
    this.request = null;
    this.hasDiscovered = this.intent.limits !== null;
    /** Whether a response in this run has shown that the upload exists. */
    this.isKnown = false;
    /** Whether this run has created the upload. */
    this.isOwn = false;
    /** Whether the server may have received everything. */
    this.mayBeComplete = false;
    /** SHA-256 of the file in hexadecimal, which is needed for the response to the request `verify`. */
    this.digest = null;
    /** The response that reported a complete upload, while its final response is requested. */
    this.completed = null;
    this.mayRefresh = true;
    this.isSingle = isShort(this.intent.method, this.intent.size, this.intent.fields);
    this.phase = resumption ? "retrieve" : this.isSingle || this.hasDiscovered ? "create" : "discover";
  }

  /**
   * @param {number} now milliseconds since 1970
   * @returns {{ kind: "send" | "wait" | "refresh" | "finished" | "failed", [detail: string]: any }}
   */
  next(now) {
    if (this.wait) {
      const step = { kind: "wait", ...this.wait };
      this.wait = null;
      return step;
    }
    this.#checkExpiry(now);
    if (["finished", "failed", "refresh"].includes(this.phase)) {
      return { kind: this.phase, error: this.error, response: this.response, isResponseLost: this.isResponseLost };
    }
    this.request = this.#nextRequest();
    return { kind: "send", request: this.request };
  }

  #nextRequest() {
    const { target, method, size, fields } = this.intent;
    const url = this.resumption?.url;
    switch (this.phase) {
      case "discover":
        return { kind: "discover", method: "OPTIONS", url: target, fields: VERSION_FIELD, start: 0, end: null };
      case "create": {
        const completes = this.isSingle;
        return {
          kind: "create", method, url: target, start: 0, end: completes ? size : 0, completes,
          fields: mergedFields(
            fields, VERSION_FIELD, { "Upload-Complete": completes ? "?1" : "?0", "Upload-Length": String(size) }),
        };
      }
      case "append":
      case "replay": {
        const bounds = { own: this.intent.appendSize, learned: this.learnedMax, limits: this.limits };
        const start = this.acknowledged;
        const end = this.phase === "replay" ? start : start + appendCount(size - start, bounds);
        const completes = this.phase === "replay" || end === size;
        return {
          kind: "append", method: "PATCH", url, start, end, completes,
          fields: {
            ...VERSION_FIELD, "Content-Type": "application/partial-upload", "Upload-Offset": String(start),
            "Upload-Complete": completes ? "?1" : "?0",
          },
        };
      }
      case "verify":
        return {
          kind: "verify", method: "HEAD", url: target, fields: { "Want-Repr-Digest": "sha-256=10" }, start: 0, end: null,
        };
      case "cancel":
        return { kind: "cancel", method: "DELETE", url, fields: VERSION_FIELD, start: 0, end: null };
      default:
        return { kind: "retrieve", method: "HEAD", url, fields: VERSION_FIELD, start: this.acknowledged, end: null };
    }
  }

  /**
   * After its lifetime an upload is not accessed any more. If an earlier run has received the lifetime, the clock may have
   * been wrong, so the offset is retrieved first.
   */
  #checkExpiry(now) {
    const { expires = null } = this.resumption ?? {};
    const isUsed = ["append", "replay", "retrieve"].includes(this.phase);
    if (!isUsed || !this.isOwn || expires === null || expires >= now) return;
    this.#forget();
    this.attempts += 1;
    if (this.attempts > this.intent.retries) this.stop(new UploadError("exhausted", "the upload has expired"));
  }

  /** Handles the final response to the current request. `now`: milliseconds since 1970. */
  responded(response, now) {
    const { request } = this;
    const { status, headers } = response;
    const limits = parseLimits(headers["upload-limit"]);
    if (limits) {
      this.limits = limits;
      if (this.resumption) this.resumption.expires = this.#expiry(now);
    }
    if (status === 401 && this.intent.canRefresh && this.mayRefresh && isComplete(response) !== true) {
      this.mayRefresh = false;
      this.following = request.kind === "append" ? "retrieve" : this.phase;
      this.completed = null;
      this.phase = "refresh";
      return;
    }
    const offset = parseInteger(headers["upload-offset"]);
    if (request.kind !== "discover" && (isSuccessful(status) || offset !== null)) this.isKnown = true;
    switch (request.kind) {
      case "cancel": return this.#fail(this.cancellation);
      case "discover": return this.#discovered(response, limits, now);
      case "retrieve": return this.#retrieved(response, offset, now);
      case "verify": return this.#verified(response, now);
    }
    if (this.completed) return this.#replayed(response, now);
    if (status === 412 && request.kind === "create" && this.mayBeComplete) {
      this.refusal = response;
      this.phase = "verify";
      return;
    }
    if (this.#isFinal(response, offset)) return this.#finish(response);
    if (isSuccessful(status)) return this.#progressed(response, offset, now);
    return this.#refused(response, offset, now);
  }

  /** Handles an offset in an interim response, which Node shows. */
  reported(offset) {
    const isValid = this.request?.kind === "append" && offset > this.acknowledged && offset <= this.request.end;
    if (isValid) this.#record(offset);
  }

  /**
   * Handles the end of the current request without a response.
   * @param {number} sent the bytes of its content that were sent
   * @param {boolean} counts whether this is one of the attempts that are limited; false for a pause
   */
  interrupted(error, sent, counts = true) {
    const { request } = this;
    // Browsers do not always report the last bytes that they have sent.
    if (request.completes && (this.isSingle || sent >= request.end - request.start)) this.mayBeComplete = true;
    this.completed = null;
    if (request.kind === "cancel") return this.#fail(this.cancellation);
    if (["discover", "verify"].includes(request.kind)) return this.#again(request.kind, error, null, counts);
    if (this.resumption) return this.#again("retrieve", error, null, counts);
    if (this.intent.method === "PUT" || !request.completes) return this.#again("create", error, null, counts);
    const message = "the upload was interrupted and must not be repeated";
    this.#fail(new UploadError("not-resumable", message, { cause: error }));
  }

  /** Continues after the credentials were replaced. */
  refreshed() { this.phase = this.following; }

  /** Deletes the upload on the server, then fails. If the server cannot be reached, the upload expires there. */
  cancel(error = new UploadError("canceled", "the upload was canceled")) {
    if (["finished", "failed"].includes(this.phase)) return;
    this.wait = null;
    this.cancellation = error;
    if (this.resumption) this.phase = "cancel";
    else this.#fail(error);
  }

  /** Continues with an upload that another tab has started or continued. */
  adopt(resumption) {
    if (this.resumption?.url !== resumption.url) this.acknowledged = 0;
    this.acknowledged = Math.max(this.acknowledged, resumption.acknowledged);
    this.resumption = resumption;
    this.phase = "retrieve";
  }

  stop(error) {
    error.isResumable = true;
    this.error = error;
    this.phase = "failed";
  }

  // MARK: Responses

  #discovered(response, limits, now) {
    const { status, headers } = response;
    if (isTransient(status)) return this.#later("discover", response, now);
    if (isUnauthorized(status)) return this.stop(UploadError.of("unauthorized", response));
    this.hasDiscovered = true;
    // A server of another version could treat the empty content of the creation as the complete file.
    const interop = parseInteger(headers["upload-draft-interop-version"]);
    const isSupported = isSuccessful(status) && limits !== null && (interop === null || interop === INTEROP_VERSION);
    if (this.#isTooLarge()) return this.#fail(this.#tooLarge(response));
    if (this.learnedMax === null) this.isSingle = !isSupported || this.intent.size < (limits.minSize ?? 0);
    else if (!isSupported) return this.#fail(UploadError.of("too-large", response));
    this.phase = "create";
  }

  #retrieved(response, offset, now) {
    const { status, headers } = response;
    if (!isSuccessful(status)) {
      if (isGone(status)) return this.#missing(response);
      if (isUnauthorized(status)) return this.stop(UploadError.of("unauthorized", response));
      if (isTransient(status)) return this.#later("retrieve", response, now);
      return this.stop(UploadError.of("refused", response));
    }
    if (offset === null) return this.stop(new UploadError("violation", "the server reports no valid offset", { status }));
    const length = parseInteger(headers["upload-length"]);
    if (length !== null && length !== this.intent.size) {
      return this.stop(new UploadError("source-changed", "the file has another size than the upload", { status }));
    }
    if (!this.#accept(offset)) return;
    if (isComplete(response)) {
      // The final response was lost. Servers may repeat it in response to an empty append.
      this.completed = response;
      this.phase = "replay";
    } else if (this.#isTooLarge()) {
      this.cancel(this.#tooLarge(response));
    } else {
      this.phase = "append";
    }
  }

  /** Whether this is the response of the target, after which there is nothing to resume. */
  #isFinal(response, offset) {
    const { request } = this;
    // Some servers report the completeness of the upload in the response that rejects the offset.
    if (response.status === 409 && request.kind === "append" && offset !== null && offset !== request.start) return false;
    const reported = isComplete(response);
    if (reported !== null) return reported;
    if (!isSuccessful(response.status) || !request.completes) return false;
    return request.kind !== "append" || offset === null || offset >= this.intent.size;
  }

  #progressed(response, offset, now) {
    const { request } = this;
    if (request.kind === "create" && !this.#locate(response, now)) return;
    if (this.#isTooLarge()) return this.cancel(this.#tooLarge(response));
    if (request.completes) {
      // The request should have completed the upload, but according to the response it has not.
      if (offset !== null && offset > this.acknowledged) {
        if (this.#accept(offset)) this.phase = "append";
        return;
      }
      return this.#again("retrieve", UploadError.of("violation", response));
    }
    const before = this.acknowledged;
    if (!this.#accept(offset ?? (request.kind === "append" ? request.end : 0))) return;
    if (this.acknowledged === before && request.end > before) {
      return this.#again("append", UploadError.of("violation", response));
    }
    this.phase = "append";
  }

  /** Stores the URL of the upload; returns whether the upload can continue. */
  #locate(response, now) {
    const location = resolve(response.headers["location"], response.url);
    if (this.resumption) return true;
    if (!location) {
      this.#fail(UploadError.of("not-resumable", response));
    } else if (new URL(location).origin !== new URL(response.url).origin) {
      this.#fail(new UploadError("violation", "the upload has another origin than its target", response));
    } else {
      this.isOwn = true;
      this.acknowledged = 0;
      this.resumption = { url: location, acknowledged: 0, expires: this.#expiry(now) };
      return true;
    }
    return false;
  }

  #refused(response, offset, now) {
    const { status, problem } = response;
    const { request } = this;
    if (isUnauthorized(status)) return this.stop(UploadError.of("unauthorized", response));
    if (problem?.code === "digest-mismatch" || problem?.type?.endsWith?.("digest-mismatch")) {
      return this.cancel(UploadError.of("digest-mismatch", response));
    }
    if (status === 413) return this.#contentTooLarge(response);
    if (request.kind === "append") {
      if (isGone(status)) return this.#missing(response);
      if (status === 409) return this.#conflicted(response, offset);
    }
    if (!isTransient(status)) {
      const error = UploadError.of("refused", response);
      return request.kind === "append" ? this.stop(error) : this.#fail(error);
    }
    if (this.resumption) return this.#later("retrieve", response, now);
    const isRepeatable = this.intent.method === "PUT" || !request.completes || status === 429 || status === 503;
    if (request.completes) this.mayBeComplete = true;
    if (isRepeatable) this.#later("create", response, now);
    else this.#fail(UploadError.of("refused", response));
  }

  #conflicted(response, offset) {
    const expected = response.problem?.["expected-offset"];
    const reported = offset ?? (Number.isSafeInteger(expected) ? expected : null);
    const error = UploadError.of("temporary", response);
    if (reported === null || reported === this.request.start) return this.#again("retrieve", error);
    if (this.#accept(reported)) this.phase = "append";
  }

  /** 413: content of this size is not sent again. */
  #contentTooLarge(response) {
    const count = (this.request.end ?? 0) - this.request.start;
    const half = Math.max(Math.floor(count / 2), this.limits.minAppendSize ?? 0);
    if (this.#isTooLarge() || half < 1 || half >= count) return this.cancel(UploadError.of("too-large", response));
    this.learnedMax = Math.min(this.learnedMax ?? Infinity, half);
    this.isSingle = false;
    this.phase = this.resumption ? "retrieve" : this.hasDiscovered ? "create" : "discover";
  }

  /** 404 or 410. An upload that was remembered from an earlier run is started again; it may have expired. */
  #missing(response) {
    if (this.isKnown || (this.mayBeComplete && this.intent.method !== "PUT")) {
      return this.#fail(UploadError.of("gone", response));
    }
    this.#forget();
  }

  #replayed(response, now) {
    const completeness = isComplete(response);
    const { completed } = this;
    this.completed = null;
    if (completeness ?? isSuccessful(response.status)) return this.#finish(response);
    // A proxy may have sent this response.
    if (completeness === null && isTransient(response.status)) return this.#later("retrieve", response, now);
    if (this.acknowledged < this.intent.size) {
      return this.#fail(new UploadError("refused", "the server ended the upload before it was complete", completed));
    }
    this.#finish(completed, true);
  }

  /**
   * An interrupted attempt may have created the file, so that the next one was refused: then the file of this name has the
   * same content.
   */
  #verified(response, now) {
    const { headers, status } = response;
    if (isTransient(status)) return this.#later("verify", response, now);
    const isSame = isSuccessful(status) && this.digest !== null && parseDigest(headers["repr-digest"]) === this.digest;
    if (isSame) this.#finish(response, true);
    else this.#fail(UploadError.of("refused", this.refusal));
  }

  // MARK: Transitions

  /** Starts again with a new upload. */
  #forget() {
    this.resumption = null;
    this.acknowledged = 0;
    this.phase = this.hasDiscovered || this.isSingle ? "create" : "discover";
  }

  #finish(response, isResponseLost = false) {
    if (!isSuccessful(response.status)) return this.#fail(UploadError.of("refused", response));
    this.acknowledged = this.intent.size;
    this.resumption = null;
    this.response = response;
    this.isResponseLost = isResponseLost;
    this.phase = "finished";
  }

  /** Fails permanently: there is nothing to resume. */
  #fail(error) {
    this.resumption = null;
    this.error = error;
    this.phase = "failed";
  }

  /** Makes another attempt after the delay that the server requests, or otherwise the usual one. */
  #later(phase, response, now) {
    this.#again(phase, UploadError.of("temporary", response), retryAfter(response.headers["retry-after"], now));
  }

  #again(phase, error, delay = null, counts = true) {
    this.mayRefresh = true;
    this.phase = phase;
    if (!counts) return;
    this.attempts += 1;
    if (this.attempts > this.intent.retries) {
      const { status, problem } = error;
      return this.stop(new UploadError("exhausted", error.message, { status, problem, cause: error }));
    }
    const usual = retryDelay(this.attempts, this.intent.random(), error.status > 0);
    this.wait = { delay: delay ?? usual, error };
  }

  #record(offset) {
    if (offset <= this.acknowledged) return;
    this.acknowledged = offset;
    if (this.resumption) this.resumption.acknowledged = offset;
    this.attempts = 0;
    this.mayRefresh = true;
  }

  /** Continues at an offset that the server reported; returns false if the offset is impossible. */
  #accept(offset) {
    if (offset < this.acknowledged) {
      this.cancel(new UploadError("offset-lost", `the server has lost bytes after offset ${offset}`));
    } else if (offset > this.intent.size) {
      this.cancel(new UploadError("violation", "the server reports more bytes than the file has"));
    } else {
      this.#record(offset);
      return true;
    }
    return false;
  }

  #isTooLarge() { return this.intent.size > (this.limits.maxSize ?? Infinity); }

  #tooLarge({ status }) {
    return new UploadError("too-large", `the server accepts at most ${this.limits.maxSize} bytes`, { status });
  }

  #expiry(now) { return this.limits.maxAge === undefined ? null : now + this.limits.maxAge * 1000; }
}

function resolve(location, base) {
  try {
    return location ? new URL(location, base).href : null;
  } catch {
    return null;
  }
}

// MARK: SHA-256 (FIPS 180-4). WebCrypto has no incremental digests, and exists only in secure contexts.

export class SHA256 {
  /** The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
  static #constants = (() => {
    const primes = [];
    for (let number = 2; primes.length < 64; number += 1) {
      if (primes.every((prime) => number % prime)) primes.push(number);
    }
    return Int32Array.from(primes, (prime) => ((Math.cbrt(prime) % 1) * 2 ** 32) | 0);
  })();

  #state = Int32Array.of(
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19);
  #words = new Int32Array(64);
  /** The last bytes, which do not fill a block yet. */
  #block = new Uint8Array(64);
  #count = 0;

  /** @param {Uint8Array} bytes the bytes that follow */
  update(bytes) {
    let position = 0;
    const filled = this.#count % 64;
    this.#count += bytes.length;
    if (filled > 0) {
      position = Math.min(64 - filled, bytes.length);
      this.#block.set(bytes.subarray(0, position), filled);
      if (filled + position < 64) return;
      this.#compress(this.#block, 0);
    }
    for (; position + 64 <= bytes.length; position += 64) this.#compress(bytes, position);
    this.#block.set(bytes.subarray(position));
  }

  /** Ends the digest; returns its 32 bytes. */
  digest() {
    const bits = this.#count * 8;
    const padding = new Uint8Array(((119 - (this.#count % 64)) % 64) + 9);
    padding[0] = 0x80;
    const view = new DataView(padding.buffer);
    view.setUint32(padding.length - 8, Math.floor(bits / 2 ** 32));
    view.setUint32(padding.length - 4, bits >>> 0);
    this.update(padding);
    const digest = new DataView(new ArrayBuffer(32));
    this.#state.forEach((word, index) => digest.setInt32(index * 4, word));
    return new Uint8Array(digest.buffer);
  }

  #compress(bytes, position) {
    const w = this.#words;
    const k = SHA256.#constants;
    for (let t = 0; t < 16; t += 1, position += 4) {
      w[t] = (bytes[position] << 24) | (bytes[position + 1] << 16) | (bytes[position + 2] << 8) | bytes[position + 3];
    }
    for (let t = 16; t < 64; t += 1) {
      const x = w[t - 15];
      const y = w[t - 2];
      w[t] = w[t - 16] + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ (x >>> 3)) +
        w[t - 7] + ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ (y >>> 10));
    }
    const state = this.#state;
    let [a, b, c, d, e, f, g, h] = state;
    for (let t = 0; t < 64; t += 1) {
      const first = (h + ((e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7)) +
        ((e & f) ^ (~e & g)) + k[t] + w[t]) | 0;
      const second = (((a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)) +
        ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e;
      e = (d + first) | 0;
      d = c; c = b; b = a;
      a = (first + second) | 0;
    }
    state[0] += a; state[1] += b; state[2] += c; state[3] += d;
    state[4] += e; state[5] += f; state[6] += g; state[7] += h;
  }
}

/** SHA-256 of a file. The source of this function and of the class also runs in a worker. */
async function digestOf(file, isStopped = () => false) {
  const digest = new SHA256();
  const step = 1 << 22;
  for (let start = 0; start < file.size && !isStopped(); start += step) {
    const slice = await file.slice(start, Math.min(start + step, file.size)).arrayBuffer();
    digest.update(new Uint8Array(slice));
  }
  return digest.digest();
}

/** Computes SHA-256 in a worker; in this thread if the page or the file does not allow that. */
async function digestInWorker(file, signal) {
  let worker = null;
  try {
    return await new Promise((resolve, reject) => {
      const program = `${SHA256}\n${digestOf}
        onmessage = ({ data }) => digestOf(data).then(postMessage, () => postMessage(null));`;
      const url = URL.createObjectURL(new Blob([program], { type: "text/javascript" }));
      worker = new Worker(url);
      URL.revokeObjectURL(url);
      worker.onmessage = ({ data }) => (data ? resolve(data) : reject(new Error("the file cannot be read")));
      worker.onerror = (event) => (event.preventDefault(), reject(new Error("the page allows no worker")));
      signal?.addEventListener("abort", () => reject(signal.reason));
      worker.postMessage(file);
    });
  } catch {
    signal?.throwIfAborted();
    return await digestOf(file, () => signal?.aborted);
  } finally {
    worker?.terminate();
  }
}

export async function sha256(file, { signal } = {}) {
  const source = sourceOf(file);
  const digest = await (source instanceof Blob && typeof Worker !== "undefined"
    ? digestInWorker(source, signal) : digestOf(source, () => signal?.aborted));
  signal?.throwIfAborted();
  return hexadecimal(digest);
}

// MARK: Files

/** Anything with a size and slices; arrays of bytes become a Blob. */
function sourceOf(file) {
  if (file instanceof ArrayBuffer || ArrayBuffer.isView(file)) return new Blob([file]);
  if (typeof file?.slice === "function" && Number.isSafeInteger(file.size)) return file;
  throw new TypeError("the file must be a Blob, an array of bytes, or an object with size and slice()");
}

async function bytesOf(source, start, end) {
  const bytes = new Uint8Array(await source.slice(start, end).arrayBuffer());
  if (bytes.length !== end - start) throw new Error("the file has become shorter");
  return bytes;
}

/** SHA-256 of the first, middle and last 64 KiB, by which a file is recognized when it is chosen again. */
async function fingerprint(source) {
  const digest = new SHA256();
  const length = Math.min(source.size, 1 << 16);
  for (const start of [0, Math.floor((source.size - length) / 2), source.size - length]) {
    digest.update(await bytesOf(source, start, start + length));
  }
  return hexadecimal(digest.digest());
}

/** Identifies a file and its target: the key of the remembered upload, and the name of the lock. */
async function identify(source, name, method, target) {
  const parts = [method, target, name, source.size, source.lastModified ?? 0, await fingerprint(source)];
  const digest = new SHA256();
  digest.update(new TextEncoder().encode(JSON.stringify(parts)));
  return hexadecimal(digest.digest());
}

// MARK: Requests

/**
 * @typedef {{ status: number, headers: Record<string, string>, text: string, problem: object | null, url: string }} Response
 */

function responseOf(status, headers, text, url) {
  let problem = null;
  if (/^application\/problem\+json\b/i.test(headers["content-type"] ?? "")) {
    try {
      problem = JSON.parse(text);
    } catch { /* The status is the only information. */ }
  }
  if (typeof problem !== "object" || Array.isArray(problem)) problem = null;
  return { status, headers, text, problem, url };
}

/**
 * Sends one request. Rejected if there is no response; the error is an `UploadError`, or the reason of the signal.
 * @param {{ fields: Record<string, string>, source: object, signal: AbortSignal, stallTimeout: number,
 *   onSent: (count: number) => void, onOffset: (offset: number) => void }} options
 * @returns {Promise<Response>}
 */
function send(request, options) {
  return typeof XMLHttpRequest === "undefined" ? sendFromNode(request, options) : sendFromPage(request, options);
}

/** With XMLHttpRequest, because fetch does not report the progress of a request. */
async function sendFromPage(request, { fields, source, signal, stallTimeout, onSent }) {
  let body = request.end === null ? null : "";
  if (request.end > request.start) {
    // Chromium sends a complete file faster than a slice of all its bytes.
    const isComplete = source instanceof Blob && request.end - request.start === source.size;
    const slice = isComplete ? source : source.slice(request.start, request.end);
    body = slice instanceof Blob ? slice : new Blob([await bytesOf(source, request.start, request.end)]);
  }
  signal.throwIfAborted();
  return await new Promise((resolve, reject) => {
    const exchange = new XMLHttpRequest();
    let error = null;
    let timer;
    const end = (reason) => {
      error ??= reason;
      exchange.abort();
    };
    const abort = () => end(signal.reason);
    const restartTimer = () => {
      clearTimeout(timer);
      timer = setTimeout(() => end(new UploadError("stalled", "no byte was transferred for too long")), stallTimeout);
    };
    exchange.upload.onprogress = (event) => {
      restartTimer();
      onSent(event.loaded);
    };
    exchange.onprogress = exchange.onreadystatechange = restartTimer;
    exchange.onloadend = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      // Without a response the status is 0. Pages do not get the reason, not even if the server does not allow their origin.
      if (error || !exchange.status) {
        return reject(error ?? new UploadError("interrupted", "no response that this page can read was received"));
      }
      const headers = {};
      for (const line of exchange.getAllResponseHeaders().trim().split(/\r?\n/)) {
        const colon = line.indexOf(":");
        if (colon > 0) headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
      }
      resolve(responseOf(exchange.status, headers, exchange.responseText, exchange.responseURL || request.url));
    };
    signal.addEventListener("abort", abort);
    exchange.open(request.method, request.url);
    for (const [name, value] of Object.entries(fields)) exchange.setRequestHeader(name, value);
    restartTimer();
    exchange.send(body);
  });
}

/** With the HTTP client of Node, because fetch neither reports progress nor handles a response before the end of the
 * request. */
async function sendFromNode(request, options, redirections = 0) {
  const { fields, source, signal, stallTimeout, onSent, onOffset } = options;
  const url = new URL(request.url);
  const { request: open } = await import(url.protocol === "https:" ? "node:https" : "node:http");
  signal.throwIfAborted();
  const length = request.end === null ? null : request.end - request.start;
  const response = await new Promise((resolve, reject) => {
    const headers = length === null ? fields : { ...fields, "Content-Length": String(length) };
    const exchange = open(url, { method: request.method, headers, signal });
    let wake = () => {};
    let isOver = false;
    const fail = (error) => {
      isOver = true;
      wake();
      reject(signal.aborted ? signal.reason : error instanceof UploadError ? error
        : new UploadError("interrupted", `the connection was lost: ${error.message}`, { cause: error }));
    };
    exchange.setTimeout(stallTimeout, () =>
      exchange.destroy(new UploadError("stalled", "no byte was transferred for too long")));
    exchange.on("error", fail);
    exchange.on("drain", () => wake());
    exchange.on("information", ({ statusCode, headers }) => {
      const offset = parseInteger(headers["upload-offset"]);
      if (statusCode === 104 && offset !== null) onOffset(offset);
    });
    exchange.on("response", (message) => {
      isOver = true;
      wake();
      const pieces = [];
      message.on("data", (piece) => pieces.push(piece));
      message.on("error", fail);
      message.on("end", () => {
        const text = new TextDecoder().decode(Buffer.concat(pieces));
        resolve(responseOf(message.statusCode, message.headers, text, request.url));
        if (!exchange.writableEnded) exchange.destroy();
      });
    });
    const write = async () => {
      for (let start = request.start; start < request.end && !isOver;) {
        const end = Math.min(start + (1 << 20), request.end);
        const bytes = await bytesOf(source, start, end);
        if (isOver) return;
        if (!exchange.write(bytes)) await new Promise((resume) => (wake = resume));
        start = end;
        onSent(start - request.start);
      }
      if (!isOver) exchange.end();
    };
    write().catch((error) => exchange.destroy(error));
  });
  const location = resolve(response.headers.location, request.url);
  if (![307, 308].includes(response.status) || !location || redirections === 5) return response;
  const isForeign = new URL(location).origin !== url.origin;
  return await sendFromNode(
    { ...request, url: location }, isForeign ? { ...options, fields: request.fields } : options, redirections + 1);
}

// MARK: Connections, locks and remembered uploads

/** The connections that all uploads share, in the order in which they were requested. */
const connections = {
  free: MAX_CONNECTIONS,
  waiting: new Set(),
  /** @returns {Promise<() => void>} a function that releases the connection */
  acquire(signal) {
    return new Promise((resolve, reject) => {
      const start = () => {
        this.free -= 1;
        signal.removeEventListener("abort", abort);
        this.waiting.delete(start);
        resolve(() => {
          this.free += 1;
          for (const next of this.waiting) {
            next();
            break;
          }
        });
      };
      const abort = () => {
        this.waiting.delete(start);
        reject(signal.reason);
      };
      signal.addEventListener("abort", abort, { once: true });
      if (this.free > 0) start();
      else this.waiting.add(start);
    });
  },
};

const lockName = (id) => `onward-upload:${id}`;

/** Two tabs must not write one upload: each would end the requests of the other. Returns null if another has the lock. */
function lock(id, options) {
  const { locks } = globalThis.navigator ?? {};
  if (!locks) return Promise.resolve(() => {});
  return new Promise((resolve, reject) => {
    locks.request(lockName(id), options, (lock) =>
      lock ? new Promise((release) => resolve(release)) : resolve(null)).catch(reject);
  });
}

let database = null;

function openDatabase() {
  database ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("onward", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("uploads", { keyPath: "id" });
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      request.result.onversionchange = request.result.onclose = () => {
        request.result.close();
        database = null;
      };
      resolve(request.result);
    };
  });
  database.catch(() => (database = null));
  return database;
}

/** Performs one operation on the remembered uploads. If the browser stores nothing, the result is undefined. */
async function inMemory(mode, action) {
  try {
    const transaction = (await openDatabase()).transaction("uploads", mode);
    return await new Promise((resolve, reject) => {
      const request = action(transaction.objectStore("uploads"));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    });
  } catch {
    return undefined;
  }
}

const memory = {
  get: (id) => inMemory("readonly", (store) => store.get(id)),
  all: () => inMemory("readonly", (store) => store.getAll()),
  put: (record) => inMemory("readwrite", (store) => store.put(record)),
  remove: (id) => inMemory("readwrite", (store) => store.delete(id)),
};

/** The limits of targets, by their collections. */
const knownLimits = new Map();
const LIMITS_LIFETIME = 300_000;
const collectionOf = (target) => new URL(".", target).href;

// MARK: Uploads

class FileUpload {
  #source;
  #options;
  #method;
  #machine = null;
  #state = "waiting";
  #sent = 0;
  #retry = null;
  #token;
  #digest = null;
  #digestController = new AbortController();
  /** The key of the remembered upload; null if it is not remembered. */
  #id = null;
  #saved = null;
  #savedAt = Date.now();
  #startedAt = Date.now();
  /** When the upload was started, perhaps by an earlier page. */
  #created = this.#startedAt;
  #isPaused = false;
  #isCanceled = false;
  #isOffline = false;
  /** The current wait or request. Its signal is aborted when a control changes. */
  #activity = new AbortController();
  #releaseConnection = null;
  #releaseLock = null;
  #notify;
  #change;

  constructor(file, url, options) {
    this.#source = sourceOf(file);
    this.#options = { stallTimeout: 60_000, ...options };
    const target = new URL(url, globalThis.location?.href);
    target.hash = "";
    this.target = target.href;
    const { pathname } = target;
    this.#method = options.method ?? (pathname.endsWith("/") ? "POST" : "PUT");
    this.name = options.name ?? this.#source.name ?? decodeURIComponentOr(pathname.split("/").pop());
    this.#announce();
    this.finished = this.#run();
  }

  get state() { return this.#state; }
  get sent() { return this.#sent; }
  get acknowledged() { return this.#machine?.acknowledged ?? 0; }
  get total() { return this.#source.size; }
  get retry() { return this.#retry; }

  pause() {
    this.#isPaused = true;
    this.#interrupt("paused");
  }

  resume() {
    this.#isPaused = this.#isOffline = false;
    if (this.#state !== "uploading") this.#interrupt("resumed");
  }

  async cancel() {
    this.#isCanceled = true;
    this.#interrupt("canceled");
    await this.finished.catch(() => {});
  }

  async *[Symbol.asyncIterator]() {
    // The iteration throws the error.
    this.finished.catch(() => {});
    for (;;) {
      const change = this.#change;
      const { state, sent, acknowledged, total, retry } = this;
      yield { state, sent, acknowledged, total, retry };
      if (["completed", "failed", "canceled"].includes(state)) return void (await this.finished);
      await change;
    }
  }

  #set(state, retry = null) {
    this.#state = state;
    this.#retry = retry;
    this.#announce();
  }

  #announce() {
    this.#notify?.();
    this.#change = new Promise((resolve) => (this.#notify = resolve));
  }

  #interrupt(reason) {
    const activity = this.#activity;
    this.#activity = new AbortController();
    activity.abort(new UploadError("interrupted", reason));
  }

  /** Waits until a control changes, at most for some milliseconds. */
  #pass(delay) {
    const { signal } = this.#activity;
    return new Promise((resolve) => {
      const timer = delay === undefined ? undefined : setTimeout(resolve, delay);
      signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
    });
  }

  async #run() {
    const { signal } = this.#options;
    const listeners = new AbortController();
    const listen = (target, type, listener) =>
      target?.addEventListener?.(type, listener, { signal: listeners.signal });
    // The constructor returns first.
    await null;
    listen(signal, "abort", () => this.#interrupt("aborted"));
    listen(globalThis, "offline", () => {
      this.#isOffline = true;
      this.#interrupt("offline");
    });
    listen(globalThis, "online", () => {
      this.#isOffline = false;
      if (this.#state !== "uploading") this.#interrupt("online");
    });
    try {
      const result = await this.#result();
      this.#sent = this.total;
      this.#set("completed");
      return result;
    } catch (error) {
      this.#set(error?.code === "canceled" ? "canceled" : "failed");
      throw error;
    } finally {
      listeners.abort();
      this.#digestController.abort();
      this.#release();
    }
  }

  /** Performs the steps of the machine until the upload has ended. */
  async #result() {
    for (;;) {
      this.#options.signal?.throwIfAborted();
      if (this.#isCanceled) {
        if (!this.#machine) throw new UploadError("canceled", "the upload was canceled");
        if (!this.#machine.cancellation) this.#machine.cancel();
      } else if (this.#isPaused) {
        this.#release();
        this.#set("paused");
        await this.#pass();
        continue;
      } else if (this.#isOffline) {
        this.#releaseConnection = this.#releaseConnection?.();
        this.#set("offline");
        await this.#pass(OFFLINE_RETRY);
        this.#isOffline = false;
        continue;
      } else {
        const { signal } = this.#activity;
        try {
          const result = await this.#begin(signal);
          if (result) return result;
        } catch (error) {
          if (signal.aborted) continue;
          throw error;
        }
      }
      const step = this.#machine.next(Date.now());
      switch (step.kind) {
        case "send":
          await this.#exchange(step.request);
          await this.#save();
          break;
        case "wait":
          this.#releaseConnection = this.#releaseConnection?.();
          this.#set("waiting", { error: step.error, at: Date.now() + step.delay });
          await this.#pass(step.delay);
          break;
        case "refresh":
          await this.#authorize(true);
          this.#machine.refreshed();
          break;
        case "finished": return await this.#complete(step);
        case "failed": throw step.error;
      }
    }
  }

  #release() {
    this.#releaseConnection = this.#releaseConnection?.();
    this.#releaseLock = this.#releaseLock?.();
  }

  /** Gets a connection and the lock; returns the result if another tab has completed the upload meanwhile. */
  async #begin(signal) {
    if (this.#releaseConnection && (this.#releaseLock || !this.#isRemembered)) return null;
    if (this.#state !== "waiting") this.#set("waiting");
    this.#releaseConnection ??= await connections.acquire(signal);
    let record = null;
    if (this.#isRemembered && !this.#releaseLock) {
      this.#id ??= await this.#read(() => identify(this.#source, this.name, this.#method, this.target));
      this.#releaseLock = await lock(this.#id, { ifAvailable: true });
      if (!this.#releaseLock) {
        this.#releaseConnection = this.#releaseConnection();
        this.#releaseLock = await lock(this.#id, { signal });
        this.#releaseConnection = await connections.acquire(signal);
      }
      record = await memory.get(this.#id);
      if (record?.result && record.finishedAt >= this.#startedAt) {
        await memory.remove(this.#id);
        return record.result;
      }
      if (record && !record.url) record = null;
    }
    const resumption = record && { url: record.url, acknowledged: record.acknowledged, expires: record.expires };
    if (resumption) {
      this.#saved = JSON.stringify([resumption, record.sent]);
      this.#created = record.created;
    }
    if (!this.#machine) await this.#create(resumption);
    else if (resumption && resumption.url !== this.#machine.resumption?.url) this.#machine.adopt(resumption);
    // After an interruption the offset of the server is not known yet.
    this.#sent = Math.max(this.#sent, this.acknowledged, resumption ? record.sent ?? 0 : 0);
    return null;
  }

  /** By default, files are remembered if there can be something to resume. */
  get #isRemembered() {
    if (typeof indexedDB === "undefined") return false;
    const isSingle = this.#machine?.isSingle ?? isShort(this.#method, this.total, this.#options.creationHeaders);
    return this.#options.remember ?? (this.#source.lastModified !== undefined && !isSingle);
  }

  async #create(resumption) {
    const { type, creationHeaders, digest, retries, appendSize, token } = this.#options;
    const fields = mergedFields(
      { "Content-Type": type || this.#source.type || "application/octet-stream" },
      new URL(this.target).pathname.endsWith("/") ? { "Content-Disposition": disposition(this.name) } : {}, creationHeaders);
    if (digest) {
      fields["Want-Repr-Digest"] = "sha-256=10";
      if (this.total <= SINGLE_REQUEST_SIZE) {
        const bytes = (await this.#computedDigest()).match(/../g).map((byte) => parseInt(byte, 16));
        fields["Repr-Digest"] = `sha-256=:${btoa(String.fromCharCode(...bytes))}:`;
      } else {
        this.#computedDigest().catch(() => {});
      }
    }
    const known = knownLimits.get(collectionOf(this.target));
    this.#machine = new UploadMachine({
      target: this.target, method: this.#method, size: this.total, fields, appendSize,
      ...(retries === undefined ? {} : { retries }), canRefresh: typeof token === "function",
      limits: known && Date.now() - known.time < LIMITS_LIFETIME ? known.limits : null,
    }, resumption);
  }

  #computedDigest() {
    this.#digest ??= this.#read(() => sha256(this.#source, { signal: this.#digestController.signal }));
    return this.#digest;
  }

  /** Reads the file, whose errors mean that it was changed or removed. */
  async #read(action) {
    try {
      return await action();
    } catch (cause) {
      const message = `the file cannot be read: ${cause.message}`;
      throw new UploadError("source-unreadable", message, { isResumable: true, cause });
    }
  }

  async #authorize(isRejected) {
    const { token } = this.#options;
    try {
      this.#token = typeof token === "function" ? await token({ isRejected }) : token;
    } catch (cause) {
      throw new UploadError("unauthorized", `no token: ${cause?.message}`, { isResumable: true, cause });
    }
  }

  async #fields() {
    const { headers } = this.#options;
    if (this.#token === undefined) await this.#authorize(false);
    const own = typeof headers === "function" ? await headers() : headers;
    return mergedFields(own, this.#token ? { Authorization: `Bearer ${this.#token}` } : {});
  }

  async #exchange(request) {
    const machine = this.#machine;
    const { signal } = this.#activity;
    // A redirection may have led to another origin, which must not get the credentials.
    const isForeign = new URL(request.url).origin !== new URL(this.target).origin;
    const fields = mergedFields(isForeign ? {} : await this.#fields(), request.fields);
    let sent = 0;
    this.#set("uploading");
    let response;
    try {
      response = await send(request, {
        fields, source: this.#source, signal, stallTimeout: this.#options.stallTimeout,
        onSent: (count) => {
          sent = count;
          this.#sent = Math.min(request.start + count, this.total);
          this.#announce();
          this.#save(true);
        },
        onOffset: (offset) => {
          machine.reported(offset);
          this.#announce();
        },
      });
    } catch (error) {
      if (!signal.aborted && request.end > request.start) {
        // For a page, an unreadable file looks like a lost connection.
        await this.#read(() => bytesOf(this.#source, request.end - 1, request.end));
      }
      // A server on this machine can be reached without a network.
      const isOffline = globalThis.navigator?.onLine === false && !LOOPBACK.test(new URL(this.target).hostname);
      if (!signal.aborted && isOffline) this.#isOffline = true;
      machine.interrupted(error, sent, !signal.aborted && !isOffline);
      return;
    }
    if (request.kind === "verify") machine.digest = await this.#computedDigest();
    machine.responded(response, Date.now());
    if (request.kind !== "discover") this.#sent = machine.acknowledged;
    else if (!machine.isSingle) {
      knownLimits.set(collectionOf(this.target), { limits: machine.limits, time: Date.now() });
    }
  }

  /**
   * Remembers the upload, or removes it from the remembered ones if there is nothing to resume. During a request, which
   * can last for hours, it remembers from time to time how much was sent.
   */
  async #save(isSending = false) {
    if (!this.#id || (isSending && Date.now() - this.#savedAt < SAVE_INTERVAL)) return;
    const { resumption } = this.#machine;
    const sent = Math.max(this.#sent, resumption?.acknowledged ?? 0);
    const current = resumption && JSON.stringify([resumption, sent]);
    if (isSending) this.#savedAt = Date.now();
    else if (current === this.#saved) return;
    this.#saved = current;
    if (!resumption) return void (this.#machine.phase !== "finished" && (await memory.remove(this.#id)));
    const { size, lastModified = 0, type = "" } = this.#source;
    const record = {
      id: this.#id, name: this.name, size, type, lastModified, target: this.target, method: this.#method, ...resumption,
      sent, created: this.#created, handle: this.#options.handle ?? null,
    };
    // Not every browser can store every handle.
    if ((await memory.put(record)) === undefined && record.handle) await memory.put({ ...record, handle: null });
  }

  async #complete({ response, isResponseLost }) {
    const location = resolve(response.headers.location, response.url);
    const url = isResponseLost ? null : location;
    const result = {
      status: response.status, url: url ?? (this.#method === "PUT" ? this.target : null), location: url, isResponseLost,
      headers: response.headers, text: response.text, digest: null,
    };
    if (this.#options.digest) {
      this.#set("hashing");
      const own = await this.#computedDigest();
      const reported = parseDigest(response.headers["repr-digest"]) ?? (await this.#retrievedDigest(result.url));
      if (reported && reported !== own) {
        if (this.#id) await memory.remove(this.#id);
        throw new UploadError("digest-mismatch", "the server has received other bytes than were sent");
      }
      result.digest = { sha256: own, isVerified: reported !== null };
    }
    if (this.#id) {
      // Another tab may wait to send the same file.
      const { pending = [] } = (await globalThis.navigator?.locks?.query()) ?? {};
      const isAwaited = pending.some(({ name }) => name === lockName(this.#id));
      await (isAwaited ? memory.put({ id: this.#id, result, finishedAt: Date.now() }) : memory.remove(this.#id));
    }
    return result;
  }

  /** SHA-256 of the file on the server; null if the server does not report it. */
  async #retrievedDigest(url) {
    if (!url) return null;
    try {
      const request = { kind: "verify", method: "HEAD", url, start: 0, end: null };
      const fields = { ...(await this.#fields()), "Want-Repr-Digest": "sha-256=10" };
      const { signal } = this.#activity;
      const options = { fields, source: this.#source, signal, stallTimeout: this.#options.stallTimeout };
      return parseDigest((await send(request, options)).headers["repr-digest"]);
    } catch {
      return null;
    }
  }
}

function decodeURIComponentOr(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function upload(file, url, options = {}) { return new FileUpload(file, url, options); }

// MARK: Remembered uploads

export async function pendingUploads({ server } = {}) {
  const records = (await memory.all()) ?? [];
  const base = server === undefined ? "" : new URL(server, globalThis.location?.href).href;
  const now = Date.now();
  // Results for other tabs, and expired uploads.
  const isOver = ({ url, expires, finishedAt }) =>
    url ? expires !== null && expires < now : finishedAt < now - 60_000;
  for (const record of records.filter(isOver)) await memory.remove(record.id);
  const { held = [] } = (await globalThis.navigator?.locks?.query()) ?? {};
  return records
    .filter((record) => record.url && !isOver(record) && record.target.startsWith(base))
    .sort((one, other) => other.created - one.created)
    .map((record) => pendingUpload(record, held.some(({ name }) => name === lockName(record.id))));
}

function pendingUpload(record, isActive) {
  const { id, name, size, type, lastModified, target, method, acknowledged, sent, created, expires, handle } = record;
  return {
    id, name, size, type, lastModified, target, method, acknowledged, sent, created, expires, handle, isActive,
    async resume(file = null, options = {}) {
      let source = file ?? handle;
      if (typeof source?.getFile === "function") {
        const chosen = source;
        const permission = (await chosen.requestPermission?.({ mode: "read" })) ?? "granted";
        if (permission !== "granted") {
          throw new UploadError("no-permission", "the file may not be read", { isResumable: true });
        }
        source = await chosen.getFile().catch((cause) => {
          throw new UploadError("source-unreadable", `the file cannot be read: ${cause.message}`, { cause });
        });
        options = { handle: chosen, ...options };
      }
      if (!source) throw new UploadError("no-permission", "choose the file again", { isResumable: true });
      if ((await identify(sourceOf(source), name, method, target)) !== id) {
        throw new UploadError("different-file", `this is not the file ${name} of the upload`, { isResumable: true });
      }
      return upload(source, target, { ...(handle ? { handle } : {}), ...options, method, name, type, remember: true });
    },
    async cancel({ token, headers, signal } = {}) {
      await memory.remove(id);
      const value = typeof token === "function" ? await token({ isRejected: false }) : token;
      const fields = {
        ...(typeof headers === "function" ? await headers() : headers), ...VERSION_FIELD,
        ...(value ? { Authorization: `Bearer ${value}` } : {}),
      };
      const request = { kind: "cancel", method: "DELETE", url: record.url, start: 0, end: null };
      const options = { fields, source: null, signal: signal ?? new AbortController().signal, stallTimeout: 30_000 };
      await send(request, options).catch(() => {});
    },
    forget: () => memory.remove(id),
  };
}
