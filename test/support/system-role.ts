import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { INSTALLATION_ROOT } from '../../src/base/package-root.js';

/** The statements of the role with system credentials, as `docs/operations.md` has them. */
export function systemRoleScript(): string {
  const docs = readFileSync(join(INSTALLATION_ROOT, 'docs', 'operations.md'), 'utf8');
  const [section = ''] = docs.split('## System credentials')[1]?.split('\n## ') ?? [];
  const script = /```sql\n(.*?)```/s.exec(section)?.[1];
  if (script === undefined) throw new Error('docs/operations.md has no SQL of the system role');
  return script;
}
