// Uploads of onward.js from Node to the real server.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import { copyFileSync, writeFileSync } from "node:fs";
import { connect, createServer as createProxy } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { before, test } from "node:test";
import { examples } from "./kit/document.mjs";
import { onward } from "./kit/module.mjs";
import { serve } from "./kit/pages.mjs";
import { SeededRandom, runSeed } from "./kit/random.mjs";
import { FaultProxy, Server, endAll, until } from "./kit/server.mjs";

const { upload } = onward;
const random = new SeededRandom(runSeed);
console.log(`# seed ${runSeed}`);

let server;
before(async () => (server = await Server.start(["--log-level", "debug"])));

const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");

test("a file is uploaded to a name, and into a collection where the server chooses the name", async () => {
  const content = random.bytes(3_000_000);
  const result = await upload(content, `${server.url}/files/a.bin`).finished;
  assert.deepEqual([result.status, result.url], [201, `${server.url}/files/a.bin`]);
  assert.deepEqual(server.file("a.bin"), content);
  const name = "größe 'x' \u{1F600}.bin";
  for (const expected of ["größe 'x' \u{1F600}.bin", "größe 'x' \u{1F600} (1).bin"]) {
    const { url, status } = await upload(content, `${server.url}/files/inbox/`, { name }).finished;
    assert.equal(status, 201);
    assert.equal(decodeURIComponent(url), `${server.url}/files/inbox/${expected}`);
    assert.deepEqual(server.file(`inbox/${expected}`), content);
  }
});

test("files of every kind and of every small size arrive", async () => {
  for (const size of [0, 1, 262_144, 262_145]) {
    const content = random.bytes(size);
    for (const [kind, file] of [["buffer", content], ["blob", new Blob([content])], ["slices", {
      size, name: "s", slice: (start, end) => ({ arrayBuffer: async () => content.subarray(start, end) }),
    }]]) {
      await upload(file, `${server.url}/files/${kind}-${size}`).finished;
      assert.deepEqual(server.file(`${kind}-${size}`), content);
      await upload(file, `${server.url}/files/c-${kind}/`, { name: String(size) }).finished;
      assert.deepEqual(server.file(`c-${kind}/${size}`), content);
    }
  }
});

test("progress is reported until everything is acknowledged, and sent is never less than acknowledged", async () => {
  const content = random.bytes(20_000_000);
  const states = new Set();
  let last;
  for await (const progress of upload(content, `${server.url}/files/progress.bin`, { appendSize: 5_000_000 })) {
    states.add(progress.state);
    assert.ok(progress.acknowledged <= progress.sent && progress.sent <= progress.total);
    assert.ok(progress.acknowledged >= (last?.acknowledged ?? 0));
    last = progress;
  }
  assert.deepEqual(last, { state: "completed", sent: 20_000_000, acknowledged: 20_000_000, total: 20_000_000, retry: null });
  assert.ok(states.has("uploading"));
});

test("an upload survives interruptions of its connection at any byte", async () => {
  for (let round = 0; round < 4; round += 1) {
    const content = random.bytes(random.integer(300_000, 12_000_000));
    const proxy = await FaultProxy.start(server.port, () => (random.oneIn(4) ? null : random.integer(1, 3_000_000)));
    const retries = [];
    const transfer = upload(content, `${proxy.url}/files/cut-${round}/`, { name: "x", retries: 100, digest: true });
    for await (const { retry } of transfer) if (retry && !retries.includes(retry)) retries.push(retry), transfer.resume();
    const { digest, url } = await transfer.finished;
    assert.deepEqual(digest, { sha256: hash(content), isVerified: true });
    assert.equal(new URL(url).pathname, `/files/cut-${round}/x`);
    assert.deepEqual(server.file(`cut-${round}/x`), content);
    assert.deepEqual(server.names(`cut-${round}`), ["x"], "the file was created once");
    proxy.stop();
  }
});

test("a small file that must not replace another one arrives although the response is lost, and is one request otherwise", async () => {
  const content = random.bytes(10_000);
  const creationHeaders = { "If-None-Match": "*" };
  let losses = 1;
  const proxy = createProxy((client) => {
    const upstream = connect(server.port, "127.0.0.1");
    client.pipe(upstream);
    upstream.on("data", (bytes) => ((losses -= 1) >= 0 ? client.destroy() : client.write(bytes)));
    const end = () => (client.destroy(), upstream.destroy());
    for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  try {
    const target = `http://127.0.0.1:${proxy.address().port}/files/once/a.bin`;
    const result = await upload(content, target, { creationHeaders }).finished;
    assert.deepEqual([result.isResponseLost, result.url], [true, target]);
    assert.deepEqual(server.file("once/a.bin"), content);
    // Another file with this name is not replaced, also if the response is lost.
    losses = 1;
    await assert.rejects(upload(random.bytes(10_000), target, { creationHeaders }).finished, { code: "refused", status: 412 });
    assert.deepEqual(server.file("once/a.bin"), content);
  } finally {
    proxy.close();
  }
  await upload(content, `${server.url}/files/once/b.bin`, { creationHeaders }).finished;
  await until(() => server.requests(" PUT /files/once/b.bin") === 1);
  assert.equal(server.requests("/files/once/b.bin"), 1);
});

test("an upload continues after the server was killed, and sends no acknowledged byte again", async () => {
  const content = random.bytes(40_000_000);
  const proxy = await FaultProxy.start(server.port);
  const transfer = upload(content, `${proxy.url}/files/killed.bin`, { appendSize: 4_000_000, retries: 50 });
  let kills = 0;
  for await (const { acknowledged } of transfer) {
    if (kills < 2 && acknowledged > (kills + 1) * 10_000_000) {
      kills += 1;
      await server.crash();
      await server.restart();
      transfer.resume();
    }
  }
  assert.equal((await transfer.finished).status, 201);
  assert.equal(kills, 2);
  assert.deepEqual(server.file("killed.bin"), content);
  assert.ok(proxy.toServer < content.length + kills * 5_000_000, `${proxy.toServer} bytes`);
  proxy.stop();
});

test("pause interrupts the request, and resume continues at the offset of the server", async () => {
  const content = random.bytes(30_000_000);
  const transfer = upload(content, `${server.url}/files/paused.bin`, { appendSize: 3_000_000 });
  for await (const { state, sent, acknowledged } of transfer) {
    if (state === "uploading" && sent > 7_000_000 && sent < 20_000_000) {
      transfer.pause();
      await until(() => transfer.state === "paused");
      assert.ok(transfer.acknowledged >= acknowledged);
      break;
    }
  }
  assert.equal(transfer.state, "paused");
  transfer.resume();
  await transfer.finished;
  assert.deepEqual(server.file("paused.bin"), content);
});

test("cancel deletes the upload on the server", async () => {
  const proxy = await FaultProxy.start(server.port);
  proxy.hold(4_000_000);
  const transfer = upload(random.bytes(8_000_000), `${proxy.url}/files/canceled.bin`, { appendSize: 3_000_000 });
  await until(() => transfer.acknowledged > 0);
  await transfer.cancel();
  await assert.rejects(transfer.finished, { name: "UploadError", code: "canceled" });
  assert.equal(transfer.state, "canceled");
  await until(() => server.requests(" DELETE /uploads/", " 204") === 1);
  await assert.rejects(async () => { for await (const _ of transfer); }, { code: "canceled" });
});

test("an AbortSignal stops the upload with its reason", async () => {
  const controller = new AbortController();
  const transfer = upload(random.bytes(10_000_000), `${server.url}/files/aborted.bin`, { signal: controller.signal });
  const reason = new Error("enough");
  controller.abort(reason);
  await assert.rejects(transfer.finished, reason);
  const before = upload(random.bytes(10), `${server.url}/files/aborted.bin`, { signal: AbortSignal.abort(reason) });
  await assert.rejects(before.finished, reason);
  assert.throws(() => server.file("aborted.bin"));
});

test("a problem document of the server is the error", async () => {
  const transfer = upload(random.bytes(10), `${server.url}/files/a.bin`, { creationHeaders: { "If-None-Match": "*" } });
  await assert.rejects(transfer.finished, (error) => {
    assert.ok(error instanceof onward.UploadError);
    assert.deepEqual([error.code, error.status, error.problem.code], ["refused", 412, "precondition-failed"]);
    return true;
  });
});

test("at most four uploads have a connection, and all of many uploads arrive", async () => {
  const content = random.bytes(400_000);
  let highest = 0;
  const transfers = Array.from({ length: 12 }, (_, index) => upload(content, `${server.url}/files/many/${index}`));
  const watch = async (transfer) => {
    for await (const _ of transfer) {
      highest = Math.max(highest, transfers.filter(({ state }) => state === "uploading").length);
    }
  };
  await Promise.all(transfers.map(watch));
  assert.equal(highest, 4);
  assert.equal(server.names("many").length, 12);
});

test("a token that the server does not accept any more is replaced once", async () => {
  const tokens = await Server.start([]);
  await tokens.crash();
  const file = join(tokens.directory, "tokens");
  writeFileSync(file, "a second-token-0123456789 create,write,read\n", { mode: 0o600 });
  tokens.options = ["--token-file", file];
  await tokens.restart();
  const asked = [];
  const token = ({ isRejected }) => {
    asked.push(isRejected);
    return isRejected ? "second-token-0123456789" : "first-token-0123456789";
  };
  const content = random.bytes(1_000_000);
  const { digest } = await upload(content, `${tokens.url}/files/x`, { token, digest: true }).finished;
  assert.deepEqual(asked, [false, true]);
  assert.deepEqual(tokens.file("x"), content);
  assert.equal(digest.isVerified, true);
  await assert.rejects(
    upload(content, `${tokens.url}/files/y`, { token: "wrong-token-0123456789" }).finished,
    { code: "unauthorized", status: 401 });
  await tokens.stop();
});

test("limits are requested before the first byte, and parts have the size that the server allows", async () => {
  const limited = await Server.start(["--max-size", "2M", "--max-append-size", "300K"]);
  await assert.rejects(upload(random.bytes(2_000_001), `${limited.url}/files/x`).finished, { code: "too-large" });
  await until(() => limited.requests(" OPTIONS /files/x") === 1);
  assert.equal(limited.requests(" PUT ") + limited.requests(" PATCH "), 0);
  const content = random.bytes(2_000_000);
  await upload(content, `${limited.url}/files/y`).finished;
  assert.deepEqual(limited.file("y"), content);
  await until(() => limited.requests(" PATCH ") === 7);
  await limited.stop();
});

test("a redirection to another origin gets no credentials", async () => {
  const received = [];
  const listen = (handler) => serve((request, response) => {
    received.push([request.method, request.headers.authorization, request.headers["x-key"]]);
    request.resume();
    request.on("end", () => handler(request, response));
  });
  const other = await listen((request, response) => {
    if (request.method === "PATCH") return response.writeHead(201, { "Upload-Complete": "?1" }).end();
    response.writeHead(201, { Location: "/upload", "Upload-Limit": "min-size=0" }).end();
  });
  const first = await listen((request, response) => {
    if (request.method === "OPTIONS") return response.writeHead(204, { "Upload-Limit": "min-size=0" }).end();
    response.writeHead(307, { Location: `${other.url}/x` }).end();
  });
  const options = { token: "secret", headers: { "X-Key": "k" } };
  await upload(random.bytes(300_000), `${first.url}/x`, options).finished;
  assert.deepEqual(received, [
    ["OPTIONS", "Bearer secret", "k"], ["PUT", "Bearer secret", "k"], ["PUT", undefined, undefined],
    ["PATCH", undefined, undefined],
  ]);
});

test("a server without resumable uploads gets one request", async () => {
  const received = [];
  const plain = await serve((request, response) => {
    let count = 0;
    request.on("data", (piece) => (count += piece.length));
    request.on("end", () => {
      received.push([request.method, count]);
      response.writeHead(request.method === "OPTIONS" ? 405 : 201).end();
    });
  });
  const result = await upload(random.bytes(1_000_000), `${plain.url}/x`).finished;
  assert.equal(result.status, 201);
  assert.deepEqual(received, [["OPTIONS", 0], ["PUT", 1_000_000]]);
});

test("the example of the document uploads a file from Node", () => {
  const content = random.bytes(3_000_000);
  const place = (name) => join(server.directory, name);
  writeFileSync(place("big.bin"), content);
  copyFileSync(fileURLToPath(new URL("../../Sources/BrowserAssets/onward.js", import.meta.url)), place("onward.mjs"));
  writeFileSync(place("example.mjs"), examples("js", server.url).find((block) => block.includes("node:fs")));
  // The server is another process, so this one may wait.
  const run = spawnSync(process.execPath, [place("example.mjs")], { cwd: server.directory, encoding: "utf8" });
  assert.equal(run.stdout, `${server.url}/files/big.bin\n`, run.stderr);
  assert.deepEqual(server.file("big.bin"), content);
});

test("a file that becomes unreadable ends the upload, and a server that is silent is noticed", async () => {
  let isGone = false;
  const file = {
    size: 10_000_000, slice(start, end) {
      return { arrayBuffer: async () => {
        if (isGone || start > 5_000_000) throw Object.assign(new Error("gone"), { gone: (isGone = true) });
        return new Uint8Array(end - start);
      } };
    },
  };
  await assert.rejects(upload(file, `${server.url}/files/unreadable`).finished, { code: "source-unreadable" });
  const silent = await serve(() => {});
  const transfer = upload(random.bytes(10), `${silent.url}/x`, { stallTimeout: 50, retries: 0 });
  await assert.rejects(transfer.finished, (error) => error.code === "exhausted" && error.cause.code === "stalled");
});

// Node 18 calls no `after` outside of suites.
test("the servers stop", () => endAll());
