// Run by `npm start` before the demo: `npm run build`, step by step, so that nobody waits in silence. Plain JavaScript,
// since nothing is built yet.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

const { scripts } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const steps = scripts.build.split(' && ');
const TICK_MS = 1_000;
const { stderr } = process;

function run(command, done) {
  const began = Date.now();
  const seconds = () => Math.round((Date.now() - began) / 1_000);
  const words = `building, step ${done + 1} of ${steps.length}: ${command.split('/').at(-1)}`;
  stderr.write(stderr.isTTY ? words : `${words}\n`);
  const tick = setInterval(() => stderr.isTTY && stderr.write(`\r${words}, ${seconds()} s`), TICK_MS);
  return new Promise((resolve) => {
    spawn(command, { shell: true, stdio: 'inherit' })
      .on('error', () => resolve(1))
      .on('close', (status) => {
        clearInterval(tick);
        if (stderr.isTTY) stderr.write('\r\x1b[K');
        resolve(status ?? 1);
      });
  });
}

if (stderr.isTTY) stderr.write('building OSL Gateway: half a minute at the first start, seconds later\n');
for (const [done, command] of steps.entries()) {
  const status = await run(command, done);
  if (status !== 0) process.exit(status);
}
