// The kit itself: what a test leaves behind.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { browsers, commandOf, descendants } from "./kit/browser.mjs";
import { until } from "./kit/server.mjs";

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
