#!/usr/bin/env node
import { existsSync } from 'node:fs';

// The kernel delivers no signal to the first process of a container unless it has a handler, so that stopping a
// container that is still starting would take until its engine kills it. `osl serve` adds its own handler later.
if (process.pid === 1)
  for (const [signal, status] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])
    process.on(signal, () => process.listenerCount(signal) > 1 || process.exit(status));

// A checkout has the first once it is built, the package the second.
const main = ['../dist/cli/main.js', '../dist/package/osl.js']
  .map((file) => new URL(file, import.meta.url))
  .find((file) => existsSync(file));

if (Number.parseInt(process.versions.node, 10) < 20) {
  process.stderr.write(`error: osl needs Node 20 or newer; this is ${process.versions.node}\n`);
  process.exitCode = 2;
} else if (main !== undefined) {
  const { run } = await import(main.href);
  await run(process.argv);
} else {
  process.stderr.write('error: osl is not built yet: run `npm run build` in its folder\n');
  process.exitCode = 2;
}
