// A running `onward serve`, and a proxy that breaks connections.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach } from "node:test";
import { fileURLToPath } from "node:url";

/** The program to test; the environment can name another one. */
export const program = process.env.ONWARD_PROGRAM ?? fileURLToPath(new URL("../../../.build/debug/onward", import.meta.url));

/** Starts a process that the kernel kills when this one ends, also if this one is killed. Its standard error is kept in
 * `log`. */
export function start(command, options, { stdio = ["ignore", "ignore", "pipe"], ...settings } = {}) {
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", command, ...options], { stdio, ...settings });
  child.log = "";
  child.stderr?.setEncoding("utf8").on("data", (text) => (child.log += text));
  child.ended = new Promise((resolve) => {
    child.on("error", (error) => {
      child.log += error;
      resolve();
    });
    child.on("exit", resolve);
  });
  return child;
}

/** Waits until `condition` returns something; its errors mean that it is not true yet. */
export async function until(condition, { seconds = 30, what = String(condition) } = {}) {
  const limit = Date.now() + seconds * 1000;
  for (;;) {
    let reason = "";
    try {
      const found = await condition();
      if (found) return found;
    } catch (error) {
      reason = `: ${error.message}`;
    }
    if (Date.now() > limit) throw new Error(`not true within ${seconds} s: ${what}${reason}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** What tests have started, with a function that ends it. */
const running = new Map();

/** Registers what a test has started, until it ends. */
export const register = (resource, end) => running.set(resource, end);
export const unregister = (resource) => running.delete(resource);

/** Ends everything that is running, except some: what was started last ends first. */
export async function endAll(exceptions = new Set()) {
  for (const [resource, end] of [...running].reverse()) {
    if (exceptions.has(resource)) continue;
    running.delete(resource);
    await end();
  }
}

/**
 * Ends what each test of a suite has started, also if the test fails: Node would wait for it. What the suite has started in
 * `before` ends with the suite. It is the first call in a suite.
 */
export function endWithTests() {
  let outside, shared;
  before(() => (outside = new Set(running.keys())));
  beforeEach(() => (shared = new Set(running.keys())));
  afterEach(() => endAll(shared));
  after(() => endAll(outside));
}

const directories = [];

/** Makes a directory that is removed when this process ends. */
export function temporaryDirectory(prefix) {
  const directory = mkdtempSync(join(tmpdir(), prefix));
  directories.push(directory);
  return directory;
}

process.on("exit", () => {
  for (const { process } of running.keys()) process?.kill("SIGKILL");
  for (const directory of directories) rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
});

export class Server {
  /** Starts a server with a data directory of its own. A restart keeps directory and port. */
  static async start(options = []) {
    const server = new Server();
    server.directory = temporaryDirectory("onward-module-");
    register(server, () => server.stop());
    server.port = 0;
    server.options = options;
    await server.restart();
    return server;
  }

  async restart() {
    const options = ["serve", "--root", join(this.directory, "data"), "--listen", `127.0.0.1:${this.port}`, "--min-free", "0"];
    this.process = start(program, [...options, ...this.options]);
    const address = /listening on 127\.0\.0\.1:(\d+)/;
    const ended = this.process.ended.then(() => { throw new Error(`the server ended: ${this.process.log}`); });
    await Promise.race([until(() => address.test(this.process.log)), ended]);
    ended.catch(() => {});
    this.port = Number(address.exec(this.process.log)[1]);
  }

  get url() { return `${this.options.includes("--tls-cert") ? "https" : "http"}://127.0.0.1:${this.port}`; }

  async crash() {
    this.process.kill("SIGKILL");
    await this.process.ended;
  }

  /** The content of a published file. */
  file(name) { return readFileSync(join(this.directory, "data/files", name)); }

  names(folder = "") { return readdirSync(join(this.directory, "data/files", folder), { recursive: false }).sort(); }

  /** The number of lines in the access log that contain all texts. */
  requests(...texts) {
    return this.process.log.split("\n").filter((line) => texts.every((text) => line.includes(text))).length;
  }

  async stop() {
    unregister(this);
    await this.crash();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** The length of the content of a request. */
const contentLength = (head) => Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);

/** The maximum number of bytes that a proxy reads of a connection that is held. */
const MAX_HELD = 16_000_000;

/**
 * A proxy that breaks and holds connections. It breaks each after the number of bytes to the server that `nextCut` returns
 * (null: never). With `endsAtCut`, it breaks all connections then, and refuses new ones until `restore`.
 *
 * `hold` makes an upload as slow as a test needs it, however fast the machine is.
 */
export class FaultProxy {
  /** `heads` has the first line and the fields of each request. */
  static async start(port, nextCut = () => null) {
    const proxy = new FaultProxy();
    Object.assign(proxy, {
      cuts: 0, connections: new Set(), isDown: false, toServer: 0, contentToServer: 0, allowance: Infinity, heads: [],
    });
    proxy.listener = createServer((client) => {
      if (proxy.isDown) return client.destroy();
      proxy.connections.add(new ProxyConnection(proxy, client, connect(port, "127.0.0.1"), nextCut() ?? Infinity));
    });
    await new Promise((resolve) => proxy.listener.listen(0, "127.0.0.1", resolve));
    register(proxy, () => proxy.stop());
    return proxy;
  }

  get url() { return `http://127.0.0.1:${this.listener.address().port}`; }

  /** Passes only so many more bytes of the contents of requests until `release`. Requests without content pass. */
  hold(bytes) {
    this.allowance = bytes;
    for (const connection of this.connections) connection.pass();
  }

  release() { this.hold(Infinity); }

  /** Breaks all connections, and refuses new ones until `restore`. */
  interrupt() {
    this.isDown = true;
    for (const connection of this.connections) connection.end();
  }

  restore() { this.isDown = false; }

  stop() {
    unregister(this);
    this.interrupt();
    this.listener.close();
  }
}

/** A connection of a client, and that to the server. */
class ProxyConnection {
  /** The bytes that are not passed to the server yet. */
  #held = [];
  #heldCount = 0;
  /** The bytes of the content of the current request that follow. */
  #content = 0;
  /** The start of the fields of the next request. */
  #head = "";

  constructor(proxy, client, upstream, remaining) {
    Object.assign(this, { proxy, client, upstream, remaining });
    client.on("data", (piece) => {
      this.#held.push(piece);
      this.#heldCount += piece.length;
      this.pass();
    });
    upstream.pipe(client);
    for (const socket of [client, upstream]) socket.on("error", () => {});
    client.on("close", () => {
      proxy.connections.delete(this);
      this.#held = [];
      upstream.end();
    });
    upstream.on("drain", () => this.pass());
    upstream.on("close", () => this.end());
  }

  end() {
    this.proxy.connections.delete(this);
    this.client.destroy();
    this.upstream.destroy();
  }

  /** Passes what may be passed now. */
  pass() {
    while (this.#held.length > 0 && !this.upstream.writableNeedDrain) {
      const piece = this.#held.shift();
      const count = this.#admitted(piece.subarray(0, this.remaining));
      if (count < piece.length) this.#held.unshift(piece.subarray(count));
      if (count === 0) break;
      this.#heldCount -= count;
      this.remaining -= count;
      this.proxy.toServer += count;
      this.upstream.write(piece.subarray(0, count));
      if (this.remaining === 0) return this.#cut();
    }
    // A connection that is not read does not report that the client has closed it, so it is read as long as possible.
    if (this.upstream.writableNeedDrain || this.#heldCount > MAX_HELD) this.client.pause();
    else this.client.resume();
  }

  /** How many bytes at the start of the piece are passed; all of them are either fields or content. */
  #admitted(piece) {
    if (this.#content > 0) {
      const count = Math.min(piece.length, this.#content, this.proxy.allowance);
      this.#content -= count;
      this.proxy.allowance -= count;
      this.proxy.contentToServer += count;
      return count;
    }
    const text = this.#head + piece.toString("latin1");
    const end = text.indexOf("\r\n\r\n");
    const count = end < 0 ? piece.length : end + 4 - this.#head.length;
    this.#head = end < 0 ? text : "";
    this.#content = 0;
    if (end >= 0) {
      this.proxy.heads.push(text.slice(0, end));
      this.#content = contentLength(text.slice(0, end));
    }
    return count;
  }

  #cut() {
    this.proxy.cuts += 1;
    this.client.destroy();
    this.upstream.end();
    if (this.proxy.endsAtCut) this.proxy.interrupt();
  }
}
