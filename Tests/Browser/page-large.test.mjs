// A file of more than 4 GiB on the page for people. ONWARD_BROWSER_HUGE is its size.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { browsers, descendants, launch, peakMemory } from "./kit/browser.mjs";
import { awaitPage, awaitUpload, hashFile, pressUpload, writeSparseFile } from "./kit/people.mjs";
import { SeededRandom, runSeed } from "./kit/random.mjs";
import { FaultProxy, Server, endWithTests, temporaryDirectory, until } from "./kit/server.mjs";

const random = new SeededRandom(runSeed);
console.log(`# seed ${runSeed}`);
const HUGE = Number(process.env.ONWARD_BROWSER_HUGE ?? 5_000_000_123);

const directory = temporaryDirectory("onward-page-");

for (const name of browsers) {
  describe(name, { timeout: 1_080_000 }, () => {
    let browser;
    endWithTests();
    before(async () => (browser = await launch(name)));

    test("a file of more than 4 GiB is resumed beyond 4 GiB", async () => {
      const sent = writeSparseFile(directory, "huge.bin", HUGE, [2 ** 31, 2 ** 32, 0.95 * HUGE], random);
      const huge = await Server.start();
      const proxy = await FaultProxy.start(huge.port);
      try {
        const page = await browser.open(proxy.url);
        await awaitPage(page);
        const part = Math.max(0.9, (2 ** 32 + 2e7) / HUGE);
        proxy.hold((part + 0.03) * HUGE);
        await page.choose("#files-input", [sent.path]);
        await awaitUpload(page, sent.name, "uploading", { beyond: part, seconds: 600 });
        await pressUpload(page, sent.name, "Pause");
        await awaitUpload(page, sent.name, "paused");
        await huge.crash();
        await huge.restart();
        proxy.release();
        await pressUpload(page, sent.name, "Resume");
        await awaitUpload(page, sent.name, "completed", { seconds: 300 });
        // The server logs the bytes of each request.
        const received = () => Array.from(huge.process.log.matchAll(/ PATCH .* in=(\d+)/g), ([, count]) => Number(count))
          .reduce((sum, count) => sum + count, 0);
        await until(() => received() > 0);
        assert.ok(received() < HUGE - 2 ** 32, `${received()} bytes after the restart`);
        const peaks = descendants(browser.process.pid).map(peakMemory);
        assert.ok(Math.max(...peaks) < 2e9, `a process of the browser used ${Math.max(...peaks)} bytes`);
        assert.equal(await hashFile(join(huge.directory, "data/files", sent.name)), await hashFile(sent.path));
        await page.close();
      } finally {
        // A failed test leaves no gigabytes behind.
        await huge.stop();
        rmSync(sent.path);
      }
    });
  });
}
