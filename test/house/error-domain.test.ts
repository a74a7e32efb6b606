import { spawnSync } from 'node:child_process';
import { test } from 'tap';

/** The domain by which tests of the one script learn of errors that nothing caught, in place of tap's own. */

const MODULE = new URL('../support/error-domain.js', import.meta.url).href;

function run(code: string): { readonly status: number | null; readonly told: string } {
  const text = `import { Domain } from ${JSON.stringify(MODULE)};\n${code}`;
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', text], {
    encoding: 'utf8',
  });
  return { status, told: stdout };
}

test('an error that nothing caught is told to the first domain, whatever throws it', (t) => {
  const { status, told } = run(`
    const first = new Domain((error, origin) => console.log('first', error.message, origin));
    const second = new Domain(() => console.log('second'));
    setTimeout(() => { throw new Error('late'); });
    Promise.reject(new Error('nobody'));
    setTimeout(() => { first.destroy(); second.destroy(); }, 100);`);
  t.equal(status, 0);
  t.equal(told, 'first nobody unhandledRejection\nfirst late uncaughtException\n');
  t.end();
});

test('once no domain is left, it ends the process', (t) => {
  const { status, told } = run(`
    new Domain(() => console.log('told')).destroy();
    setTimeout(() => { throw new Error('late'); });`);
  t.strictSame({ status, told }, { status: 1, told: '' });
  t.end();
});
