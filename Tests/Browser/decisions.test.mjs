// The decisions of onward.js, without input and output.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { onward } from "./kit/module.mjs";
import { SeededRandom, runSeed } from "./kit/random.mjs";

const {
  UploadMachine, SHA256, appendCount, disposition, parseBoolean, parseDictionary, parseDigest, parseInteger, parseLimits,
  retryAfter, retryDelay, sha256,
} = onward;
const random = new SeededRandom(runSeed);
console.log(`# seed ${runSeed}`);

const TARGET = "http://files.example/files/a.bin";
const UPLOAD = "http://files.example/uploads/1";

function response(status, headers = {}, { problem = null, url = TARGET } = {}) {
  return { status, headers, problem, url, text: "" };
}

function machine(intent = {}, resumption = null) {
  return new UploadMachine({ target: TARGET, method: "PUT", size: 10_000_000, random: random.next, ...intent }, resumption);
}

/** The next request, after any waits. */
function nextRequest(machine) {
  for (;;) {
    const step = machine.next(0);
    if (step.kind !== "wait") {
      assert.equal(step.kind, "send", step.error?.message);
      return step.request;
    }
  }
}

function respond(machine, kind, ...args) {
  assert.equal(nextRequest(machine).kind, kind);
  machine.responded(response(...args), 0);
}

/** A machine whose upload exists. */
function started(intent) {
  const upload = machine(intent);
  respond(upload, "discover", 204, { "upload-limit": "min-size=0", "upload-draft-interop-version": "8" });
  respond(upload, "create", 201, { location: "/uploads/1", "upload-limit": "max-age=60" });
  return upload;
}

test("fields of RFC 9651 are parsed strictly, and malformed fields count as absent", () => {
  for (const [value, expected] of [
    ["0", 0], [" 12 ", 12], ["12;a=1;b", 12], ["999999999999999", 999999999999999], ["-1", null], ["1.0", null],
    ["1000000000000000", null], ["1, 1", null], ["", null], [undefined, null], ["+1", null], ["1;A=2", null],
  ]) assert.equal(parseInteger(value), expected, String(value));
  for (const [value, expected] of [
    ["?1", true], ["?0", false], ["?1;a", true], ["true", null], ["1", null], ["?1, ?1", null], [undefined, null],
  ]) assert.equal(parseBoolean(value), expected, String(value));
  assert.deepEqual(
    [...parseDictionary('a=1;x="y,z" , b;c=?0,d=(1 "2" x;y);z, e="q\\"\\\\,", f=:AQ==:, a=2')],
    [["b", "?1"], ["d", '(1 "2" x;y)'], ["e", '"q\\"\\\\,"'], ["f", ":AQ==:"], ["a", "2"]]);
  for (const value of ["a=1,", "a=", ",a", "A=1", "a=1 b=2", 'a="', "a=(1", "", "a;", "a==1"]) {
    assert.equal(parseDictionary(value), null, value);
  }
});

test("a limit that is not an integer makes Upload-Limit void, and unknown limits have no effect", () => {
  assert.deepEqual(
    parseLimits('max-size=5, max-append-size=3, min-append-size=2, min-size=1, max-age=9, x="max-size=1"'),
    { maxSize: 5, maxAppendSize: 3, minAppendSize: 2, minSize: 1, maxAge: 9 });
  for (const value of ["max-size=1.5", "max-size=-1", "max-size", 'max-size="1"', "max-age=x", "max-size=(1)"]) {
    assert.equal(parseLimits(value), null, value);
  }
  assert.deepEqual(parseLimits("something=else"), {});
});

test("the content of a request has the size that both sides allow", () => {
  for (let round = 0; round < 2000; round += 1) {
    const limit = () => (random.oneIn(2) ? random.integer(1, 1000) : undefined);
    const [own, learned, maxAppendSize, minAppendSize] = [limit(), limit(), limit(), limit()];
    const remaining = random.integer(0, 3000);
    const count = appendCount(remaining, { own, learned, limits: { maxAppendSize, minAppendSize } });
    assert.ok(count <= remaining && (count > 0 || remaining === 0));
    assert.ok(count <= Math.min(maxAppendSize ?? Infinity, learned ?? Infinity));
    if (minAppendSize <= Math.min(maxAppendSize ?? Infinity, learned ?? Infinity)) {
      assert.ok(count >= Math.min(minAppendSize, remaining), "the server's minimum has precedence over the caller's maximum");
    }
  }
});

test("the delays are those of the Swift client", () => {
  const policy = readFileSync(new URL("../../Sources/ResumableUpload/Client/RetryPolicy.swift", import.meta.url), "utf8");
  const seconds = /delays: \[Duration\] = \[([\d, ]+)\]/.exec(policy)[1].split(", ").map(Number);
  const longest = [...seconds, seconds.at(-1), seconds.at(-1)].map((one) => one * 1000);
  assert.ok(longest.length > 5);
  longest.forEach((delay, index) => {
    assert.equal(retryDelay(index + 1, 1, false), delay);
    assert.equal(retryDelay(index + 1, 0, false), 0);
    assert.equal(retryDelay(index + 1, 0, true), (delay || 1000) / 2);
  });
  const now = Date.parse("2026-11-26T12:00:00Z");
  for (const [value, expected] of [
    ["3", 3000], ["0", 0], ["100000", 600_000], ["Thu, 26 Nov 2026 12:00:07 GMT", 7000],
    ["Thu, 26 Nov 2020 12:00:07 GMT", 0], ["", null], ["soon", null], ["-1", null], [undefined, null],
  ]) assert.equal(retryAfter(value, now), expected, String(value));
});

test("a file name of any kind becomes a valid Content-Disposition", () => {
  assert.equal(disposition("größe (1).bin"), "inline; filename*=UTF-8''gr%C3%B6%C3%9Fe%20%281%29.bin");
  for (const name of ["\uD800x", "x\uDC00", "a\uD83D\uDE00b", "\u0000\n\"'*", "%41"]) {
    const value = disposition(name);
    assert.match(value, /^inline; filename\*=UTF-8''[A-Za-z0-9%._~!$&+-]+$/);
    assert.equal(decodeURIComponent(value.split("''")[1]), name.replace(/\uD800|(?<!\uD83D)\uDC00/, "\uFFFD"));
  }
});

test("SHA-256 is that of Node, in whatever pieces the bytes arrive", async () => {
  for (let round = 0; round < 200; round += 1) {
    const bytes = random.bytes(random.integer(0, 500));
    const digest = new SHA256();
    for (let start = 0; start < bytes.length;) {
      const end = Math.min(bytes.length, start + random.integer(0, 150));
      digest.update(bytes.subarray(start, end));
      start = end;
    }
    const expected = createHash("sha256").update(bytes).digest();
    assert.deepEqual(Buffer.from(digest.digest()), expected, `${bytes.length} bytes`);
    assert.equal(await sha256(bytes), expected.toString("hex"));
    assert.equal(parseDigest(`sha-512=:AA==:, sha-256=:${expected.toString("base64")}:`), expected.toString("hex"));
  }
  for (const value of [undefined, "", "sha-256=abc", "md5=:AA==:", "sha-256=:A:"]) assert.equal(parseDigest(value), null);
});

test("the limits of the target are requested before the first byte, and a file that exceeds them is not sent", () => {
  const upload = machine();
  const request = nextRequest(upload);
  assert.deepEqual([request.method, request.url, request.end], ["OPTIONS", TARGET, null]);
  upload.responded(response(204, { "upload-limit": "max-size=9999999" }), 0);
  const step = upload.next(0);
  assert.deepEqual([step.kind, step.error.code, step.error.isResumable], ["failed", "too-large", false]);
});

test("an upload is created with an empty request, and sent in parts that the server allows", () => {
  const upload = machine({ method: "POST", size: 10, fields: { "Content-Type": "text/plain" } });
  respond(upload, "discover", 204, { "upload-limit": "max-append-size=4" });
  const creation = nextRequest(upload);
  assert.deepEqual(creation.fields, {
    "Content-Type": "text/plain", "Upload-Draft-Interop-Version": "8", "Upload-Complete": "?0", "Upload-Length": "10",
  });
  assert.deepEqual([creation.start, creation.end], [0, 0]);
  upload.responded(response(201, { location: "/uploads/1", "upload-limit": "max-append-size=4" }), 0);
  for (const [start, end, complete] of [[0, 4, "?0"], [4, 8, "?0"], [8, 10, "?1"]]) {
    const append = nextRequest(upload);
    assert.deepEqual([append.method, append.url, append.start, append.end], ["PATCH", UPLOAD, start, end]);
    assert.equal(append.fields["Upload-Offset"], String(start));
    assert.equal(append.fields["Upload-Complete"], complete);
    upload.responded(response(complete === "?1" ? 201 : 204, { "upload-complete": complete }), 0);
  }
  assert.equal(upload.next(0).kind, "finished");
});

test("a short PUT is one request, also if it must not replace a file, but not with other conditions", () => {
  const upload = machine({ size: 1000 });
  const request = nextRequest(upload);
  assert.deepEqual([request.kind, request.start, request.end, request.fields["Upload-Complete"]], ["create", 0, 1000, "?1"]);
  for (const [field, value, kind] of [
    ["if-none-match", " * ", "create"], ["If-None-Match", '"a"', "discover"], ["If-Match", "*", "discover"],
    ["If-Unmodified-Since", "Thu, 26 Nov 2026 12:00:00 GMT", "discover"],
  ]) assert.equal(nextRequest(machine({ size: 1000, fields: { [field]: value } })).kind, kind, field);
  assert.equal(nextRequest(machine({ size: 1000, method: "POST" })).kind, "discover");
  // It is sent again after an interruption, because a PUT can be repeated.
  upload.interrupted(new onward.UploadError("interrupted", ""), 1000);
  assert.equal(nextRequest(upload).kind, "create");
});

test("after an interruption, a name that exists is that of the upload only if the file has the same content", () => {
  const problem = { code: "precondition-failed" };
  const own = "ab".repeat(32);
  const digest = (hex) => ({ "repr-digest": `sha-256=:${Buffer.from(hex, "hex").toString("base64")}:` });
  const fields = { "If-None-Match": "*" };
  // Without an interruption the file is another one.
  const first = machine({ size: 1000, fields });
  respond(first, "create", 412, {}, { problem });
  assert.deepEqual([first.next(0).error.code, first.error.status, first.error.problem], ["refused", 412, problem]);
  for (const interrupt of [
    (upload) => upload.interrupted(new onward.UploadError("interrupted", ""), 0),
    (upload) => upload.responded(response(504), 0),
  ]) {
    for (const [status, headers, isSame] of [
      [200, digest(own), true], [200, digest("cd".repeat(32)), false], [200, {}, false], [403, {}, false], [404, digest(own), false],
    ]) {
      const upload = machine({ size: 1000, fields });
      assert.equal(nextRequest(upload).kind, "create");
      interrupt(upload);
      respond(upload, "create", 412, {}, { problem });
      const request = nextRequest(upload);
      assert.deepEqual([request.kind, request.method, request.url, request.end], ["verify", "HEAD", TARGET, null]);
      assert.equal(request.fields["If-None-Match"], undefined);
      // This request can fail, too.
      upload.interrupted(new onward.UploadError("interrupted", ""), 0);
      respond(upload, "verify", 503);
      assert.equal(nextRequest(upload).kind, "verify");
      upload.digest = own;
      upload.responded(response(status, headers), 0);
      const step = upload.next(0);
      if (isSame) assert.deepEqual([step.kind, step.isResponseLost, upload.acknowledged], ["finished", true, 1000]);
      else assert.deepEqual([step.kind, step.error.status, step.error.problem], ["failed", 412, problem]);
    }
  }
});

test("without support for resumable uploads, everything is one request, which is repeated only if that is safe", () => {
  for (const [method, isRepeated] of [["PUT", true], ["POST", false]]) {
    const upload = machine({ method });
    // The second response has no limits.
    if (method === "PUT") respond(upload, "discover", 405);
    else respond(upload, "discover", 204);
    const request = nextRequest(upload);
    assert.deepEqual([request.kind, request.end], ["create", 10_000_000]);
    upload.interrupted(new onward.UploadError("interrupted", ""), 5000);
    if (isRepeated) assert.equal(nextRequest(upload).kind, "create");
    else assert.equal(upload.next(0).error.code, "not-resumable");
  }
});

test("the ninth failure without progress ends the upload, and progress resets the count", () => {
  const upload = started();
  const lost = () => {
    nextRequest(upload);
    upload.interrupted(new onward.UploadError("interrupted", "lost"), 0);
  };
  for (let round = 0; round < 8; round += 1) lost();
  respond(upload, "retrieve", 204, { "upload-offset": "5", "upload-complete": "?0" });
  for (let round = 0; round < 8; round += 1) lost();
  assert.equal(nextRequest(upload).kind, "retrieve");
  upload.interrupted(new onward.UploadError("interrupted", "lost"), 0);
  const step = upload.next(0);
  assert.deepEqual([step.kind, step.error.code, step.error.cause.code], ["failed", "exhausted", "interrupted"]);
  assert.equal(step.error.isResumable, true);
  assert.deepEqual([upload.resumption.url, upload.resumption.acknowledged], [UPLOAD, 5]);
});

test("an offset that does not increase is no progress", () => {
  const upload = started();
  for (let round = 0; round < 8; round += 1) {
    nextRequest(upload);
    upload.interrupted(new onward.UploadError("interrupted", "lost"), 0);
    respond(upload, "retrieve", 204, { "upload-offset": "0", "upload-complete": "?0" });
  }
  nextRequest(upload);
  upload.interrupted(new onward.UploadError("interrupted", "lost"), 0);
  assert.equal(upload.next(0).error?.code, "exhausted");
});

test("a pause is not an attempt", () => {
  const upload = started({ retries: 0 });
  for (let round = 0; round < 20; round += 1) {
    nextRequest(upload);
    upload.interrupted(new onward.UploadError("interrupted", "paused"), 0, false);
  }
  assert.equal(nextRequest(upload).kind, "retrieve");
});

test("the delay of Retry-After precedes the usual delay", () => {
  const upload = started();
  respond(upload, "append", 503, { "retry-after": "7" }, { problem: { code: "not-ready", detail: "Later." } });
  const step = upload.next(0);
  assert.deepEqual([step.kind, step.delay, step.error.code, step.error.problem.code], ["wait", 7000, "temporary", "not-ready"]);
  assert.equal(nextRequest(upload).kind, "retrieve");
});

test("after a 409 the upload continues at the offset of the server without another request", () => {
  const upload = started();
  respond(upload, "append", 409, { "upload-offset": "77", "upload-complete": "?0" });
  assert.equal(nextRequest(upload).start, 77);
  upload.responded(response(409, {}, { problem: { "expected-offset": 99 } }), 0);
  assert.equal(nextRequest(upload).start, 99);
  // The same offset again is no progress.
  upload.responded(response(409, { "upload-offset": "99" }), 0);
  assert.equal(nextRequest(upload).kind, "retrieve");
});

test("a smaller offset than before deletes the upload, because the server has lost bytes", () => {
  const upload = started();
  respond(upload, "append", 409, { "upload-offset": "77", "upload-complete": "?0" });
  respond(upload, "append", 409, { "upload-offset": "76", "upload-complete": "?0" });
  respond(upload, "cancel", 204);
  assert.equal(upload.next(0).error.code, "offset-lost");
});

test("an upload of an earlier run that has expired is started again, one of this run has failed", () => {
  for (const status of [404, 410]) {
    const remembered = machine({}, { url: UPLOAD, acknowledged: 5000 });
    respond(remembered, "retrieve", status);
    assert.equal(remembered.acknowledged, 0);
    assert.equal(nextRequest(remembered).kind, "discover");
    const upload = started();
    respond(upload, "append", status);
    const step = upload.next(0);
    assert.deepEqual([step.kind, step.error.code, step.error.isResumable], ["failed", "gone", false]);
  }
});

test("an upload is not accessed after its lifetime", () => {
  const upload = started();
  assert.equal(upload.next(60_000).request.kind, "append");
  upload.interrupted(new onward.UploadError("interrupted", ""), 0, false);
  const request = upload.next(60_001).request;
  assert.deepEqual([request.kind, request.url], ["create", TARGET]);
  // The lifetime of an earlier run may be from a wrong clock.
  const remembered = machine({}, { url: UPLOAD, acknowledged: 5000, expires: 60_000 });
  assert.equal(remembered.next(60_001).request.kind, "retrieve");
});

test("a lost final response is requested again with an empty append", () => {
  const upload = started();
  nextRequest(upload);
  upload.interrupted(new onward.UploadError("interrupted", ""), 10_000_000);
  respond(upload, "retrieve", 204, { "upload-offset": "10000000", "upload-complete": "?1" });
  const append = nextRequest(upload);
  assert.deepEqual([append.kind, append.start, append.end, append.completes], ["append", 10_000_000, 10_000_000, true]);
  upload.responded(response(201, { "upload-complete": "?1", location: "/files/a.bin" }), 0);
  const step = upload.next(0);
  assert.deepEqual([step.kind, step.isResponseLost, step.response.headers.location], ["finished", false, "/files/a.bin"]);
  // A server that does not repeat it still has the complete file.
  const other = started();
  nextRequest(other);
  other.interrupted(new onward.UploadError("interrupted", ""), 10_000_000);
  respond(other, "retrieve", 204, { "upload-offset": "10000000", "upload-complete": "?1" });
  respond(other, "append", 400, {}, { problem: { code: "completed-upload" } });
  const last = other.next(0);
  assert.deepEqual([last.kind, last.isResponseLost], ["finished", true]);
});

test("the final response of the target ends the upload, also if it is an error", () => {
  const upload = started();
  respond(upload, "append", 422, { "upload-complete": "?1" }, { problem: { code: "content-refused", detail: "No." } });
  const { kind, error } = upload.next(0);
  assert.deepEqual([kind, error.code, error.status, error.problem.code, error.message, error.isResumable],
    ["failed", "refused", 422, "content-refused", "No.", false]);
});

test("other credentials are requested once after a 401, and again after progress", () => {
  const upload = started({ canRefresh: true });
  respond(upload, "append", 401);
  assert.equal(upload.next(0).kind, "refresh");
  upload.refreshed();
  respond(upload, "retrieve", 204, { "upload-offset": "5", "upload-complete": "?0" });
  respond(upload, "append", 401);
  assert.equal(upload.next(0).kind, "refresh");
  upload.refreshed();
  respond(upload, "retrieve", 401);
  const { kind, error } = upload.next(0);
  assert.deepEqual([kind, error.code, error.status, error.isResumable], ["failed", "unauthorized", 401, true]);
});

test("after a 413 less content is sent, and never less than nothing", () => {
  const upload = started({ size: 1000, method: "POST" });
  const sizes = [];
  let step = upload.next(0);
  for (; step.kind !== "failed"; step = upload.next(0)) {
    if (step.kind === "wait") continue;
    const { kind, start, end } = step.request;
    if (kind === "append") sizes.push(end - start);
    upload.responded(kind === "append" ? response(413) : response(204, { "upload-offset": "0", "upload-complete": "?0" }), 0);
  }
  assert.deepEqual(sizes, [1000, 500, 250, 125, 62, 31, 15, 7, 3, 1]);
  assert.equal(step.error.code, "too-large");
});

test("the URL of an upload must have the origin of its target", () => {
  const upload = machine({ limits: {} });
  respond(upload, "create", 201, { location: "http://other.example/uploads/1" });
  assert.equal(upload.next(0).error.code, "violation");
});

test("a created upload without a URL is not continued", () => {
  const upload = machine({ limits: {} });
  respond(upload, "create", 201);
  assert.equal(upload.next(0).error.code, "not-resumable");
});

test("cancel deletes the upload, also before a retry", () => {
  const upload = started();
  respond(upload, "append", 503);
  upload.cancel();
  const request = nextRequest(upload);
  assert.deepEqual([request.method, request.url], ["DELETE", UPLOAD]);
  upload.interrupted(new onward.UploadError("interrupted", ""), 0);
  assert.deepEqual([upload.next(0).error.code, upload.resumption], ["canceled", null]);
});

const DIGEST = Buffer.alloc(32, 7).toString("base64");

/** A server that loses requests and responses, and refuses some. */
class ModelServer {
  constructor(random, size) {
    Object.assign(this, { random, size, offset: 0, exists: false, isComplete: false, published: 0, expired: false });
    // A smaller maximum would only need more steps.
    const smallest = Math.ceil((size + 1) / 1000);
    this.limits = random.oneIn(3) ? `max-append-size=${random.integer(smallest, size + 1)}` : "min-size=0";
    this.hiddenMax = random.oneIn(6) ? random.integer(smallest, size + 1) : Infinity;
  }

  /** Returns the response; null if the client gets none. */
  handle(request) {
    const { random } = this;
    if (random.oneIn(8)) return null;
    if (random.oneIn(12)) {
      const status = random.pick([408, 423, 425, 429, 500, 502, 503, 504]);
      return response(status, random.oneIn(2) ? { "retry-after": "1" } : {});
    }
    const answer = this.#process(request);
    return random.oneIn(8) ? null : answer;
  }

  get #state() { return { "upload-offset": String(this.offset), "upload-complete": this.isComplete ? "?1" : "?0" }; }

  #process(request) {
    const count = request.end - request.start;
    switch (request.kind) {
      case "discover": return response(204, { "upload-limit": this.limits });
      case "create":
        if (this.published > 0 && request.fields["If-None-Match"]) return response(412);
        this.exists = true;
        this.offset = 0;
        this.isComplete = false;
        if (request.completes) return this.#receive(request, count);
        return response(201, { location: "/uploads/1", "upload-limit": this.limits, ...this.#state });
      case "verify": return response(this.published > 0 ? 200 : 404, { "repr-digest": `sha-256=:${DIGEST}:` });
      case "retrieve":
        return response(204, { ...this.#state, "upload-length": String(this.size) }, { url: UPLOAD });
      case "append": {
        if (this.isComplete) {
          return count === 0 && request.start === this.offset ? response(201, this.#state) : response(409, this.#state);
        }
        if (request.start !== this.offset) return response(409, this.#state);
        if (count > this.hiddenMax) return response(413, { "upload-complete": "?0" });
        return this.#receive(request, count);
      }
    }
  }

  #receive(request, count) {
    // The connection is lost after some of the content.
    if (this.random.oneIn(5) && count > 0) {
      if (!request.completes || request.kind === "append") this.offset += this.random.integer(0, count - 1);
      return null;
    }
    this.offset += count;
    if (request.completes) {
      assert.equal(this.offset, this.size);
      this.isComplete = true;
      this.published += 1;
    }
    return response(request.completes ? 201 : 204, this.#state);
  }
}

test("an upload to a server that loses requests and responses arrives, and acknowledged bytes are never sent again", () => {
  for (let round = 0; round < 3000; round += 1) {
    const seed = runSeed + round;
    const random = new SeededRandom(seed);
    const size = random.pick([0, 1, 1000, 300_000, 5_000_000]);
    const method = random.pick(["PUT", "POST"]);
    const server = new ModelServer(random, size);
    const fields = random.oneIn(2) ? { "If-None-Match": "*" } : {};
    const upload = machine({
      size, method, fields, retries: 200, random: random.next, appendSize: random.oneIn(3) ? 70_000 : undefined,
    });
    upload.digest = "07".repeat(32);
    let highest = 0;
    let step = upload.next(0);
    for (let count = 0; step.kind !== "finished"; count += 1, step = upload.next(0)) {
      assert.ok(count < 20_000 && step.kind !== "failed", `seed ${seed}: ${step.error?.message}`);
      if (step.kind === "wait") {
        assert.ok(step.delay >= 0 && step.delay <= 30_000);
        // A pause or an interruption can come at any time.
        continue;
      }
      const { request } = step;
      if (request.kind === "append") assert.ok(request.start >= highest, `seed ${seed}`);
      const answer = server.handle(request);
      if (answer) upload.responded(answer, 0);
      else {
        const sent = random.integer(0, Math.max(0, (request.end ?? 0) - request.start));
        upload.interrupted(new onward.UploadError("interrupted", ""), sent, random.oneIn(2));
      }
      assert.ok(upload.acknowledged >= highest || server.offset === 0, `seed ${seed}`);
      highest = upload.resumption ? upload.acknowledged : 0;
    }
    assert.ok(server.isComplete && server.offset === size, `seed ${seed}`);
    if (method === "POST" || fields["If-None-Match"]) assert.equal(server.published, 1, `seed ${seed}: the file was created once`);
  }
});
