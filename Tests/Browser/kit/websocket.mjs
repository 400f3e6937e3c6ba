// A WebSocket client (RFC 6455) for text messages, because Node has one only from version 22 on.
import { randomBytes } from "node:crypto";
import { request } from "node:http";

/** Connects to `ws://…`. `onMessage` is called with the text of each message. */
export function connectWebSocket(url, onMessage, onClose = () => {}) {
  return new Promise((resolve, reject) => {
    const exchange = request(url.replace(/^ws:/, "http:"), {
      headers: {
        Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": randomBytes(16).toString("base64"),
      },
    });
    exchange.on("error", reject);
    exchange.on("response", (response) => reject(new Error(`${url}: status ${response.statusCode}`)));
    exchange.on("upgrade", (_, socket, head) => {
      let received = Buffer.alloc(0);
      let pieces = [];
      const read = (bytes) => {
        received = Buffer.concat([received, bytes]);
        for (;;) {
          const frame = parseFrame(received);
          if (!frame) return;
          received = received.subarray(frame.length);
          if (frame.code === 9) socket.write(frameOf(10, frame.content));
          if (frame.code === 8) socket.end();
          if (frame.code > 2) continue;
          pieces.push(frame.content);
          if (!frame.isLast) continue;
          const message = Buffer.concat(pieces).toString();
          pieces = [];
          onMessage(message);
        }
      };
      socket.on("data", read);
      socket.on("error", () => {});
      socket.on("close", onClose);
      resolve({ send: (text) => socket.write(frameOf(1, Buffer.from(text))), close: () => socket.destroy() });
      if (head.length > 0) read(head);
    });
    exchange.end();
  });
}

function parseFrame(bytes) {
  if (bytes.length < 2) return null;
  const short = bytes[1] & 0x7f;
  const start = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < start) return null;
  const count = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  if (bytes.length < start + count) return null;
  return {
    isLast: (bytes[0] & 0x80) !== 0, code: bytes[0] & 0x0f, content: bytes.subarray(start, start + count),
    length: start + count,
  };
}

/** A frame of a client, which has to be masked. */
function frameOf(code, content) {
  const { length } = content;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65536 ? 4 : 10);
  head[0] = 0x80 | code;
  head[1] = 0x80 | (length < 126 ? length : length < 65536 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  const mask = randomBytes(4);
  const masked = Buffer.from(content);
  for (let index = 0; index < length; index += 1) masked[index] ^= mask[index % 4];
  return Buffer.concat([head, mask, masked]);
}
