/**
 * Types of `onward.js`, a client of "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload, interop version 8)
 * for browsers and Node. docs/browser.md of the project is its documentation.
 */

/** The version of this module, which is also a part of its URL. */
export const version: string;

/**
 * - `waiting`: for one of the four connections, for another tab that sends the same file, or for the next attempt
 *   (see `Progress.retry`)
 * - `hashing`: everything is sent, and SHA-256 of the remaining bytes is computed
 * - `offline`: the browser has no network; the upload continues when it has
 * - `failed`: another call of `upload()` with the same file can resume the upload if `UploadError.isResumable`
 */
export type UploadState =
  "waiting" | "hashing" | "uploading" | "paused" | "offline" | "completed" | "failed" | "canceled";

/** A file: a `File`, a `Blob`, a `Buffer` or another array of bytes, or anything else with a size and slices. */
export type Source = Blob | ArrayBuffer | ArrayBufferView | SlicedSource;

/** A file that is read in slices, for example from a disk in Node. */
export interface SlicedSource {
  readonly size: number;
  readonly name?: string;
  readonly type?: string;
  /** Milliseconds since 1970. */
  readonly lastModified?: number;
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer | Uint8Array> };
}

export interface UploadOptions {
  /** The default is POST for a URL that ends in a slash (the server chooses the name of the file), otherwise PUT. */
  method?: "PUT" | "POST" | (string & {});
  /** The bearer token. A function is called before the first request, and again after a 401 (`isRejected`). */
  token?: string | ((state: { isRejected: boolean }) => string | null | undefined | Promise<string | null | undefined>);
  /** More fields of every request to the server. A function is called before each request. */
  headers?: Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>);
  /** Fields of the request that creates the upload, such as `If-None-Match` or `Repr-Digest`. */
  creationHeaders?: Record<string, string>;
  /** The name of the file in a collection; the default is `file.name`. */
  name?: string;
  /** The media type of the file; the default is `file.type`, or `application/octet-stream`. */
  type?: string;
  /** Stops the upload, which can be resumed later. `finished` is rejected with the reason of the signal. */
  signal?: AbortSignal;
  /** Compute SHA-256 while the file is sent, and compare it with that of the server. The default is false. */
  digest?: boolean;
  /**
   * Remember the upload in IndexedDB, so that it is resumed when the same file is chosen again. The default is true for a
   * `File`, unless it is sent in one request: then there is nothing to resume. Tokens are never stored.
   */
  remember?: boolean;
  /** Stored with the remembered upload, so that it can be resumed without choosing the file again. */
  handle?: FileSystemFileHandle;
  /**
   * The maximum bytes of one request. The server's `max-append-size` applies, too. The default is no maximum: one request
   * is faster. With smaller requests `acknowledged` grows during the upload, and more uploads can share the connections.
   */
  appendSize?: number;
  /** Further attempts without progress, before the upload fails. The default is 8; `Infinity` is allowed. */
  retries?: number;
  /** Milliseconds without a byte in either direction, after which a request is interrupted. The default is 60,000. */
  stallTimeout?: number;
}

export interface Progress {
  readonly state: UploadState;
  /** Bytes that were handed to the network, of the current request and before it. */
  readonly sent: number;
  /** Bytes that the server has reported as durable. They are never sent again. */
  readonly acknowledged: number;
  readonly total: number;
  /** Why the upload was interrupted, and when the next attempt begins (milliseconds since 1970); otherwise null. */
  readonly retry: { readonly error: UploadError; readonly at: number } | null;
}

export interface UploadResult {
  /** The status of the final response; if that is lost, of the last response. */
  readonly status: number;
  /** The URL of the file; null if the server chose its name and the response was lost. */
  readonly url: string | null;
  /** The field `Location` of the final response, resolved; otherwise null. */
  readonly location: string | null;
  /** Whether the upload is complete, but the response of the target could not be retrieved. */
  readonly isResponseLost: boolean;
  /** The fields of the response that this page may read; the names are lower-case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The content of the response as text. */
  readonly text: string;
  /** With the option `digest`: SHA-256 in hexadecimal, and whether the server has reported the same value. */
  readonly digest: { readonly sha256: string; readonly isVerified: boolean } | null;
}

/** One upload. It starts automatically as soon as one of the four connections is free. */
export interface Upload extends AsyncIterable<Progress>, Progress {
  /** The file name that is shown to people. */
  readonly name: string;
  /** The URL that the upload was started with. */
  readonly target: string;
  /**
   * The result. It is rejected with an `UploadError`, or with the reason of the `AbortSignal`. An iteration of the
   * progress throws the same error.
   */
  readonly finished: Promise<UploadResult>;
  /** Interrupts the request in progress. Has no effect on an upload that has ended. */
  pause(): void;
  /** Continues after `pause()`, or attempts at once if the upload waits for the next attempt. */
  resume(): void;
  /** Ends the upload, and deletes it on the server. `finished` is rejected with the code `canceled`. */
  cancel(): Promise<void>;
  /** The latest progress; intermediate values are left out if the loop is slower. */
  [Symbol.asyncIterator](): AsyncIterator<Progress>;
}

/** Starts an upload, or resumes the remembered upload of the same file. `url` may be relative to the page. */
export function upload(file: Source, url: string | URL, options?: UploadOptions): Upload;

/** An upload of an earlier page or tab that can be resumed. */
export interface PendingUpload {
  readonly id: string;
  readonly name: string;
  readonly size: number;
  readonly type: string;
  /** Milliseconds since 1970. */
  readonly lastModified: number;
  /** The URL of the file or collection; never the URL of the upload, which is a secret. */
  readonly target: string;
  readonly method: string;
  /** The bytes that the server has reported as stored. */
  readonly acknowledged: number;
  /** The bytes that were sent until a few seconds before the interruption. The server may have stored them. */
  readonly sent: number;
  /** When the upload was started, and when the server removes it (milliseconds since 1970; null if unknown). */
  readonly created: number;
  readonly expires: number | null;
  /** Whether another tab or this one sends the upload now. */
  readonly isActive: boolean;
  readonly handle: FileSystemFileHandle | null;
  /**
   * Resumes the upload with a file that a person has chosen again, or with the stored handle, for which the browser asks
   * the person for permission: call it in the handler of a click. Rejected with the code `different-file` if name, size,
   * time and sampled content are not those of the upload, and with `no-permission`.
   */
  resume(file?: Source | FileSystemFileHandle | null, options?: UploadOptions): Promise<Upload>;
  /** Deletes the upload on the server and in this browser. If the server cannot be reached, it expires there. */
  cancel(options?: Pick<UploadOptions, "token" | "headers" | "signal">): Promise<void>;
  /** Removes the upload only from this browser. */
  forget(): Promise<void>;
}

/** The remembered uploads, the latest first. `server`: only those to targets below this URL. */
export function pendingUploads(filter?: { server?: string | URL }): Promise<PendingUpload[]>;

/** A problem document (RFC 9457) with the members of this server. */
export interface Problem {
  type?: string;
  title?: string;
  status?: number;
  detail?: string;
  code?: string;
  [member: string]: unknown;
}

/**
 * - `refused`: the server does not accept the request, and a repetition would not change that
 * - `unauthorized`: 401, 403 or 407
 * - `too-large`: the file exceeds the server's limit
 * - `exhausted`: too many attempts without progress; `cause` is the last interruption
 * - `interrupted`, `stalled`, `temporary`: why an attempt ended (in `Progress.retry` and `cause`): no response that this
 *   page may read, no byte for too long, or a response such as 503
 * - `not-resumable`: the server does not support resumable uploads, and the request must not be repeated
 * - `gone`: the upload does not exist any more on the server
 * - `offset-lost`: the server reports fewer bytes than before
 * - `source-changed`, `source-unreadable`: the file has changed, or cannot be read any more
 * - `digest-mismatch`: the server has received other bytes than were sent
 * - `different-file`, `no-permission`: see `PendingUpload.resume`
 * - `violation`: a response that the protocol does not allow
 * - `canceled`: `cancel()` was called
 */
export type UploadErrorCode =
  "refused" | "unauthorized" | "too-large" | "exhausted" | "interrupted" | "stalled" | "temporary" | "not-resumable" |
  "gone" | "offset-lost" | "source-changed" | "source-unreadable" | "digest-mismatch" | "different-file" |
  "no-permission" | "violation" | "canceled";

export class UploadError extends Error {
  readonly name: "UploadError";
  readonly code: UploadErrorCode;
  /** The status of the response; 0 if there was none. */
  readonly status: number;
  /** The problem document of the response; null if there was none. */
  readonly problem: Problem | null;
  /** Whether another call of `upload()` with the same file can continue. */
  readonly isResumable: boolean;
  readonly cause?: unknown;
}

/** SHA-256 of a file in hexadecimal, computed in a worker if the page allows workers. */
export function sha256(file: Source, options?: { signal?: AbortSignal }): Promise<string>;
