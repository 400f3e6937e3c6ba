// A running `onward serve`, and a proxy that breaks connections.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

/** The servers whose directories exist. A failed test may leave them behind. */
const servers = new Set();
process.on("exit", () => {
  for (const { process, directory } of servers) {
    process?.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
  }
});

export class Server {
  /** Starts a server with a data directory of its own. A restart keeps directory and port. */
  static async start(options = []) {
    const server = new Server();
    server.directory = mkdtempSync(join(tmpdir(), "onward-module-"));
    servers.add(server);
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
    await this.crash();
    servers.delete(this);
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/**
 * A proxy that breaks connections: each after the number of bytes to the server that `nextCut` returns (null: never). With
 * `endsAtCut`, it breaks all connections then, and refuses new ones until `restore`.
 */
export class FaultProxy {
  static async start(port, nextCut = () => null) {
    const proxy = new FaultProxy();
    Object.assign(proxy, { cuts: 0, sockets: new Set(), isDown: false, toServer: 0 });
    proxy.listener = createServer((client) => {
      if (proxy.isDown) return client.destroy();
      const upstream = connect(port, "127.0.0.1");
      const pair = { client, upstream };
      proxy.sockets.add(pair);
      let remaining = nextCut() ?? Infinity;
      const end = () => {
        proxy.sockets.delete(pair);
        client.destroy();
        upstream.destroy();
      };
      client.on("data", (piece) => {
        const passed = piece.subarray(0, remaining);
        remaining -= passed.length;
        proxy.toServer += passed.length;
        if (!upstream.write(passed)) {
          client.pause();
          upstream.once("drain", () => client.resume());
        }
        if (remaining === 0) {
          proxy.cuts += 1;
          client.destroy();
          upstream.end();
          if (proxy.endsAtCut) proxy.interrupt();
        }
      });
      upstream.pipe(client);
      for (const socket of [client, upstream]) socket.on("error", () => {});
      client.on("close", () => (proxy.sockets.delete(pair), upstream.end()));
      upstream.on("close", end);
    });
    await new Promise((resolve) => proxy.listener.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url() { return `http://127.0.0.1:${this.listener.address().port}`; }

  /** Breaks all connections, and refuses new ones until `restore`. */
  interrupt() {
    this.isDown = true;
    for (const { client, upstream } of this.sockets) {
      client.destroy();
      upstream.destroy();
    }
  }

  restore() { this.isDown = false; }

  stop() {
    this.interrupt();
    this.listener.close();
  }
}
