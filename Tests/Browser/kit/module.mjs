// The module as the server serves it. Node reads a file as an ES module only if its name ends in .mjs.
import { readFileSync } from "node:fs";

export const source = readFileSync(new URL("../../../Sources/BrowserAssets/onward.js", import.meta.url), "utf8");

export const onward = await import("data:text/javascript;base64," + Buffer.from(source).toString("base64"));
