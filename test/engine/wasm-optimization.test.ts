import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { ROOT } from '../tools/cli/support.js';

/** V8 says in a process of its own which WebAssembly functions it optimizes. */
const run = promisify(execFile);

/** Parses 400 statements after a call of `threads`; gives the number of functions that were optimized. */
async function optimized(call: 'disableWasmOptimization' | 'enableWasmOptimization'): Promise<number> {
  const script = `
    const threads = await import('./dist/src/base/threads/thread.js');
    const { loadModule, parseSync } = await import('libpg-query');
    threads.${call}();
    await loadModule();
    for (let i = 0; i < 400; i++)
      parseSync(\`select a, count(*) from t join u on t.x = u.y where b like 'x%' group by a limit \${i}\`);
    await new Promise((resolve) => setTimeout(resolve, 500));`;
  const flags = ['--trace-wasm-compilation-times', '--input-type=module', '--eval', script];
  const { stdout } = await run(process.execPath, flags, { cwd: ROOT, maxBuffer: 1 << 24 });
  return stdout.match(/ using TurboFan/g)?.length ?? 0;
}

t.test('the parser is optimized only if the process allows it', async (t) => {
  t.equal(await optimized('disableWasmOptimization'), 0);
  const count = await optimized('enableWasmOptimization');
  t.ok(count > 0, `${count} functions`);
});

t.test('a command runs without', async (t) => {
  const manifest = join(ROOT, 'examples', 'supply-chain', 'manifest.yaml');
  const args = [
    '--trace-wasm-compilation-times',
    join(ROOT, 'bin', 'osl.js'),
    'validate',
    '--manifest',
    manifest,
  ];
  const { stdout } = await run(process.execPath, args, { cwd: ROOT, maxBuffer: 1 << 24 });
  t.match(stdout, / using Liftoff/, 'V8 tells');
  t.notMatch(stdout, / using TurboFan/);
});
