#!/usr/bin/env node
import { existsSync } from 'node:fs';

const main = new URL('../dist/src/tools/cli/main.js', import.meta.url);

if (Number.parseInt(process.versions.node, 10) < 20) {
  process.stderr.write(`error: osl needs Node 20 or newer; this is ${process.versions.node}\n`);
  process.exitCode = 2;
} else if (existsSync(main)) {
  const { run } = await import(main.href);
  await run(process.argv);
} else {
  process.stderr.write('error: osl is not built yet: run `npm run build` in its folder\n');
  process.exitCode = 2;
}
