// The kit itself: what a test leaves behind, and how an upload is held.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { browsers, commandOf, descendants } from "./kit/browser.mjs";
import { FaultProxy, Server, start, temporaryDirectory, until } from "./kit/server.mjs";

for (const name of browsers) {
  test(`a test that is killed leaves no process of ${name} and no server behind`, async () => {
    const program = `
      import { launch } from "${import.meta.resolve("./kit/browser.mjs")}";
      import { Server } from "${import.meta.resolve("./kit/server.mjs")}";
      const server = await Server.start();
      const browser = await launch("${name}");
      await browser.open(server.url);
      console.log("ready");
      setInterval(() => {}, 1000);`;
    const killed = spawn(process.execPath, ["--input-type=module", "--eval", program], { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    killed.stdout.on("data", (text) => (output += text));
    await until(() => output.includes("ready"), { seconds: 120 });
    const left = descendants(killed.pid).map((pid) => [pid, commandOf(pid)]).filter(([, command]) => command);
    assert.ok(left.some(([, command]) => command.includes(name)) && left.some(([, command]) => command.includes("serve")));
    killed.kill("SIGKILL");
    const remaining = () => left.filter(([pid, command]) => commandOf(pid) === command);
    try {
      await until(() => remaining().length === 0, { seconds: 30 });
    } catch {
      const found = remaining();
      for (const [pid] of found) process.kill(pid, "SIGKILL");
      assert.fail(found.map(([, command]) => command.slice(0, 100)).join("\n"));
    }
  });
}

for (const place of ["before", "test"]) {
  test(`tests of which the ${place} fails end, and leave no process behind`, async () => {
    const directory = temporaryDirectory("onward-kit-");
    const program = `
      import { before, describe, test } from "node:test";
      import { writeFileSync } from "node:fs";
      import { launch } from "${import.meta.resolve("./kit/browser.mjs")}";
      import { FaultProxy, Server, endWithTests } from "${import.meta.resolve("./kit/server.mjs")}";
      describe("failing", () => {
        endWithTests();
        const begin = async () => {
          const server = await Server.start();
          const proxy = await FaultProxy.start(server.port);
          proxy.hold(0);
          const browser = await launch("${browsers[0]}");
          const page = await browser.open(proxy.url);
          await page.evaluate(() => void fetch("/files/a", { method: "PUT", body: new Uint8Array(1e6) }));
          writeFileSync(${JSON.stringify(join(directory, "pids"))}, [server.process.pid, browser.process.pid].join());
          throw new Error("this fails");
        };
        ${place}(${place === "test" ? '"fails", ' : ""}begin);
        test("is next", () => {});
      });`;
    const failing = start(process.execPath, ["--input-type=module", "--eval", program]);
    let hasEnded = false;
    failing.ended.then(() => (hasEnded = true));
    try {
      await until(() => hasEnded, { seconds: 120 });
    } finally {
      failing.kill("SIGKILL");
    }
    assert.equal(failing.exitCode, 1);
    const left = readFileSync(join(directory, "pids"), "utf8").split(",").map(Number).map(commandOf);
    assert.deepEqual(left, ["", ""]);
  });
}

test("a proxy holds the content of uploads at a byte, and passes other requests", async () => {
  const server = await Server.start();
  const proxy = await FaultProxy.start(server.port);
  proxy.hold(1_000_000);
  const sent = fetch(`${proxy.url}/files/held`, { method: "PUT", body: new Uint8Array(3_000_000) });
  sent.catch(() => {});
  await until(() => proxy.contentToServer === 1_000_000);
  assert.equal((await fetch(`${proxy.url}/healthz`)).status, 200);
  assert.deepEqual(server.names(), []);
  proxy.hold(500_000);
  await until(() => proxy.contentToServer === 1_500_000);
  assert.deepEqual(server.names(), []);
  proxy.release();
  assert.equal((await sent).status, 201);
  assert.equal(server.file("held").length, 3_000_000);
  assert.equal(proxy.contentToServer, 3_000_000);
  proxy.stop();
  await server.stop();
});
