// Runs tus-js-client from a checkout without `npm install`: dependencies that are not installed are replaced by the parts
// of them that are needed here, and its files are loaded as modules, whatever its package.json says.
import { register } from 'node:module'

const replacements = {
  'js-base64': `export const Base64 = { encode: (text) => Buffer.from(text, 'utf8').toString('base64') }`,
  'is-stream': `
    const isStream = (value) => value != null && typeof value.pipe === 'function'
    isStream.readable = (value) => isStream(value) && value.readable !== false && typeof value._read === 'function'
    export default isStream`,
  'lodash.throttle': `export default (action) => action`,
  'combine-errors': `export default (errors) => new AggregateError(errors)`,
  'proper-lockfile': `export const lock = async () => async () => {}`,
  'url-parse': `export default URL`,
}

const hooks = `
  const replacements = ${JSON.stringify(replacements)}
  export async function resolve(name, context, next) {
    try {
      return await next(name, context)
    } catch (error) {
      if (!(name in replacements)) throw error
      return { url: 'data:text/javascript,' + encodeURIComponent(replacements[name]), shortCircuit: true }
    }
  }
  export async function load(url, context, next) {
    const isSource = url.startsWith('file:') && /\\/lib(\\.esm)?\\//.test(url) && url.endsWith('.js')
    return next(url, isSource && !url.includes('/node_modules/') ? { ...context, format: 'module' } : context)
  }`

register('data:text/javascript,' + encodeURIComponent(hooks))
