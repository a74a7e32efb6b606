import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { ROOT } from '../tools/cli/support.js';

/** The verifier shares the format with the writer, and how bytes are read; none of the code that made them. */

const AUDIT = join(ROOT, 'audit');
const WRITER = ['commit-group', 'epoch', 'log', 'file-store', 'record', 'frontier', 'signer', 'recover'];

/** The files whose code a file runs, by their names: imports of types run none. */
function reachedFrom(start: string, seen: Set<string> = new Set()): ReadonlySet<string> {
  if (seen.has(start)) return seen;
  seen.add(start);
  const text = readFileSync(start, 'utf8');
  const statements = text.matchAll(/^(?:import|export) (?!type\b)([^;]*?)from '(\.[^']+)\.js';/gms);
  for (const [, names = '', path = ''] of statements) {
    const listed = /\{([^}]*)\}/s
      .exec(names)?.[1]
      ?.split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '');
    if (listed?.every((name) => name.startsWith('type '))) continue;
    reachedFrom(join(dirname(start), `${path}.ts`), seen);
  }
  for (const [, path = ''] of text.matchAll(/new URL\('(\.[^']+)\.js'/g))
    reachedFrom(join(dirname(start), `${path}.ts`), seen);
  return seen;
}

function namesOf(files: ReadonlySet<string>): readonly string[] {
  return [...files].map((file) => file.slice(AUDIT.length + 1).replace(/\.ts$/, '')).sort();
}

t.test('verify runs these files and no other', async (t) => {
  const files = namesOf(reachedFrom(join(AUDIT, 'verify.ts')));
  t.strictSame(files, [
    'checkpoint',
    'format',
    'source',
    'tree',
    'verdict',
    'verify',
    'verifying/segment-verifier-thread',
    'verifying/verify-segment',
  ]);
  t.strictSame(
    files.filter((name) => WRITER.includes(name)),
    [],
  );
});

t.test('the writer runs those that it is said to, so that the list above means something', async (t) => {
  const files = namesOf(reachedFrom(join(AUDIT, 'log.ts')));
  t.strictSame(
    WRITER.filter((name) => !files.includes(name)),
    [],
  );
  t.notOk(
    files.includes('tree') || files.includes('verify') || files.some((name) => name.startsWith('verifying/')),
  );
});
