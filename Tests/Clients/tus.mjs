// Uploads with tus-js-client from a checkout in several ways, and prints one JSON object for each.
//
//     node --import=./tus-dependencies.mjs tus.mjs CHECKOUT ENDPOINT SOURCE PROTOCOL
//
// Each object has the name of the variant, and either `url` (the client reported success) or `error`.
import { createReadStream, existsSync, readFileSync } from 'node:fs'
import { resolve as resolvePath } from 'node:path'
import { Readable } from 'node:stream'
import { pathToFileURL } from 'node:url'

const [checkout, endpoint, source, protocol] = process.argv.slice(2)
const entries = ['lib.esm/node/index.js', 'lib/node/index.js'].map((path) => resolvePath(checkout, path))
const entry = entries.find((path) => existsSync(path))
if (!entry) throw new Error(`no tus-js-client in ${checkout}`)
const { Upload } = await import(pathToFileURL(entry))

const content = readFileSync(source)
// The size is no divisor of the length, because version 4.3.1 never completes a stream of unknown length whose last chunk is
// full.
const chunkSize = Math.ceil(content.length / 3) + 1

function stream() {
  return Readable.from(
    (function* () {
      for (let at = 0; at < content.length; at += 10_000) yield content.subarray(at, at + 10_000)
    })(),
    { objectMode: false },
  )
}

function start(upload) {
  return new Promise((done) => {
    upload.options.onSuccess = () => done({ url: upload.url })
    upload.options.onError = (error) => done({ error: String(error.message) })
    upload.start()
  })
}

const make = (input, options) => new Upload(input, { endpoint, protocol, retryDelays: null, ...options })
const send = (input, options) => start(make(input, options))

/** Uploads the first chunk, aborts, and starts again: the same upload object, or a new one with the URL. */
async function resume(input, options, next) {
  const upload = make(input, { ...options, chunkSize })
  await new Promise((done, failed) => {
    upload.options.onError = failed
    upload.options.onChunkComplete = () => {
      upload.abort()
      done()
    }
    upload.start()
  })
  upload.options.onChunkComplete = null
  return next ? send(next(), { uploadUrl: upload.url }) : start(upload)
}

const ways = {
  post: () =>
    send(createReadStream(source), {
      uploadDataDuringCreation: true,
      metadata: { filename: 'größe.png', filetype: 'image/png' },
    }),
  patch: () => send(content, {}),
  chunks: () => send(createReadStream(source), { chunkSize }),
  stream: () => send(stream(), { chunkSize, uploadSize: content.length }),
  deferred: () => send(stream(), { chunkSize, uploadLengthDeferred: true }),
  'stream-post': () => send(stream(), { chunkSize, uploadSize: content.length, uploadDataDuringCreation: true }),
  'resumed-file': () => resume(createReadStream(source), {}, () => createReadStream(source)),
  'resumed-stream': () => resume(stream(), { uploadSize: content.length }),
  empty: () => send(Buffer.alloc(0), { metadata: { filename: 'empty.txt', filetype: 'text/plain' } }),
  parallel: () => send(content, { parallelUploads: 2 }),
}

for (const [variant, run] of Object.entries(ways)) {
  let timer
  const late = new Promise((done) => {
    timer = setTimeout(() => done({ error: 'no end in 30 s' }), 30_000)
  })
  const outcome = await Promise.race([run().catch((error) => ({ error: String(error) })), late])
  clearTimeout(timer)
  console.error(JSON.stringify({ variant, ...outcome }))
}
process.exit(0)
