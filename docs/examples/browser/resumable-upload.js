// Uploads a file with "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload), and resumes the upload after
// interruptions, pauses and reloads of the page. It uses no library; copy the parts that you need.
//
// Pages cannot read the interim response 104 with the URL of the upload. So an empty request creates the upload
// ("careful creation"): its final response has the URL. Then PATCH requests send the content.
//
//   const upload = new ResumableUpload(file, "https://files.example/files/", { headers: { Authorization: "Bearer …" } });
//   upload.onprogress = (sent, total) => …;
//   await upload.start();      // resolves with the URL of the file; rejects with an UploadError, or AbortError on pause()
//   upload.pause();            // start() resumes, also on a new object for the same file after a reload of the page

export class UploadError extends Error {
  constructor(message, status = 0, retriable = false) {
    super(message);
    this.name = "UploadError";
    this.status = status;
    this.retriable = retriable;
  }
}

const VERSION = { "Upload-Draft-Interop-Version": "8" };

export class ResumableUpload {
  onprogress = () => {};
  // Called after an interruption, with its reason and the seconds until the next attempt.
  oninterruption = () => {};

  // `target`: the URL of the file; or, if it ends in "/", of a collection, in which the server chooses the name.
  constructor(file, target, { headers = {}, retries = 10 } = {}) {
    this.file = file;
    this.target = new URL(target, location.href).href;
    this.headers = headers;
    this.retries = retries;
    // An upload of the same file to the same target is resumed. The content of the file is not compared.
    this.key = ["upload", this.target, file.name, file.size, file.lastModified].join("|");
  }

  // The URL of the upload is a secret: everyone who has it can continue the upload.
  get url() { return localStorage.getItem(this.key); }
  set url(value) { value ? localStorage.setItem(this.key, value) : localStorage.removeItem(this.key); }

  pause() { this.controller?.abort(); }

  async start() {
    this.controller = new AbortController();
    let failures = 0;
    let best = -1;
    for (;;) {
      try {
        if (!this.url) await this.#create();
        const state = await this.#state();
        if (state.complete) {
          // The final response was lost. This server sends it again in response to an empty append.
          return this.#finished((await this.#append(state).catch(() => ({}))).location);
        }
        if (state.offset > best) failures = 0;
        best = Math.max(best, state.offset);
        this.onprogress(state.offset, this.file.size);
        const response = await this.#append(state);
        if (response.complete) return this.#finished(response.location);
      } catch (error) {
        if (this.controller.signal.aborted || !error.retriable || failures >= this.retries) throw error;
        const seconds = Math.min(30, 0.5 * 2 ** failures) * (0.5 + Math.random());
        failures += 1;
        this.oninterruption(error.message, seconds);
        await this.#wait(seconds);
      }
    }
  }

  // Cancels the upload and deletes it on the server.
  async cancel() {
    this.pause();
    const url = this.url;
    this.url = null;
    if (url) await fetch(url, { method: "DELETE", headers: { ...this.headers, ...VERSION } });
  }

  async #create() {
    const isCollection = new URL(this.target).pathname.endsWith("/");
    const name = encodeURIComponent(this.file.name).replace(/['()*]/g, (c) => "%" + c.charCodeAt(0).toString(16));
    const response = await this.#fetch(this.target, {
      method: isCollection ? "POST" : "PUT",
      headers: {
        "Upload-Complete": "?0",
        "Upload-Length": String(this.file.size),
        "Content-Type": this.file.type || "application/octet-stream",
        ...(isCollection ? { "Content-Disposition": `attachment; filename*=UTF-8''${name}` } : {}),
      },
    });
    const url = response.headers.get("Location");
    if (!response.ok || !url) throw await UploadError.from(response);
    this.url = new URL(url, this.target).href;
  }

  // Retrieves the offset. This also ends an older request that the server still receives on a lost connection.
  async #state() {
    const response = await this.#fetch(this.url, { method: "HEAD" });
    if ([403, 404, 410].includes(response.status)) {
      // The upload has expired or was canceled: the next attempt starts from the beginning.
      this.url = null;
      throw new UploadError("the upload no longer exists", response.status, true);
    }
    if (!response.ok) throw await UploadError.from(response);
    const offset = Number(response.headers.get("Upload-Offset") ?? NaN);
    const complete = response.headers.get("Upload-Complete") === "?1";
    if (!complete && !(offset >= 0 && offset <= this.file.size)) throw new UploadError("the offset is invalid");
    return { offset, complete, limits: response.headers.get("Upload-Limit") ?? "" };
  }

  // Sends the content from the offset on, up to its end or to max-append-size. It uses XMLHttpRequest, because fetch
  // does not report the progress of a request.
  #append({ offset, limits }) {
    const maxLength = Number(/(?:^|[ ,])max-append-size=(\d+)/.exec(limits)?.[1] ?? Infinity);
    const end = Math.min(this.file.size, offset + maxLength);
    const { signal } = this.controller;
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const request = new XMLHttpRequest();
      const abort = () => request.abort();
      signal.addEventListener("abort", abort);
      request.onloadend = () => signal.removeEventListener("abort", abort);
      request.upload.onprogress = (event) => this.onprogress(offset + event.loaded, this.file.size);
      request.onabort = () => reject(signal.reason);
      request.onerror = () => reject(new UploadError("the connection was lost", 0, true));
      request.onload = () => {
        const { status } = request;
        if (status >= 200 && status < 300) {
          resolve({
            complete: request.getResponseHeader("Upload-Complete") === "?1",
            location: request.getResponseHeader("Location"),
          });
        } else if (status === 409) {
          // The next attempt retrieves the offset again.
          reject(new UploadError("the server has another offset", status, true));
        } else {
          reject(new UploadError(problem(request.responseText, status), status, isTemporary(status)));
        }
      };
      request.open("PATCH", this.url);
      const fields = {
        ...this.headers, ...VERSION, "Content-Type": "application/partial-upload", "Upload-Offset": String(offset),
        "Upload-Complete": end === this.file.size ? "?1" : "?0",
      };
      for (const [name, value] of Object.entries(fields)) request.setRequestHeader(name, value);
      request.send(this.file.slice(offset, end));
    });
  }

  #finished(url) {
    const base = this.url;
    this.url = null;
    this.onprogress(this.file.size, this.file.size);
    return url ? new URL(url, base).href : this.target;
  }

  async #fetch(url, options) {
    const { signal } = this.controller;
    try {
      return await fetch(url, { ...options, headers: { ...this.headers, ...VERSION, ...options.headers }, signal });
    } catch (error) {
      if (signal.aborted) throw error;
      // If the server does not allow the origin of this page, fetch fails in the same way as without a connection.
      throw new UploadError(`no response that this page can read: ${error.message}`, 0, true);
    }
  }

  #wait(seconds) {
    const { signal } = this.controller;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, seconds * 1000);
      signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
    });
  }

}

UploadError.from = async (response) =>
  new UploadError(problem(await response.text(), response.status), response.status, isTemporary(response.status));

function isTemporary(status) { return status === 408 || status === 423 || status === 429 || status >= 500; }

// Errors are problem documents (RFC 9457).
function problem(text, status) {
  try {
    const { title, detail } = JSON.parse(text);
    return detail ?? title ?? `status ${status}`;
  } catch {
    return `status ${status}`;
  }
}
