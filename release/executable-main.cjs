// What the single executable runs: unpacks the gateway beside the user's caches, once, and starts it there. PGlite and the
// grammar are WebAssembly, and threads are files of their own, which Node reads from a disk alone.
const { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { homedir } = require('node:os');
const { dirname, join } = require('node:path');
const { getAsset } = require('node:sea');
const { brotliDecompressSync } = require('node:zlib');

const { name, files } = JSON.parse(getAsset('index', 'utf8'));
const caches = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
const app = join(caches, 'osl-gateway', name);

function unpack() {
  mkdirSync(dirname(app), { recursive: true, mode: 0o700 });
  const making = mkdtempSync(`${app}-`);
  const content = brotliDecompressSync(Buffer.from(getAsset('content')));
  let at = 0;
  for (const [path, size] of files) {
    mkdirSync(dirname(join(making, path)), { recursive: true, mode: 0o700 });
    writeFileSync(join(making, path), content.subarray(at, at + size), { mode: 0o600 });
    at += size;
  }
  try {
    renameSync(making, app); // whole or not at all
  } catch (error) {
    rmSync(making, { recursive: true, force: true });
    if (!existsSync(app)) throw error; // else another start was first
  }
}

function start() {
  if (!existsSync(app)) unpack();
  // Node puts the executable where a script would be. A worker of the gateway is started with its own file instead.
  const [, , first = ''] = process.argv;
  const own = first.startsWith(app) && first.endsWith('.js');
  if (own) process.argv.splice(1, 1);
  createRequire(join(app, 'start.cjs'))('./start.cjs')(own ? first : null);
}

try {
  start();
} catch (error) {
  process.stderr.write(`error: osl cannot be unpacked into ${app}: ${error.message}\n`);
  process.stderr.write('hint: XDG_CACHE_HOME names another folder\n');
  process.exitCode = 2;
}
