import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { MANIFEST_SCHEMA, POLICY_SCHEMA } from '../../src/model/manifest/index.js';

/** Files in the order in which they are moved into place: the manifest last. */
const FILES = ['manifest.schema.json', 'policy.schema.json', 'policy.yaml', 'manifest.yaml'] as const;

/** Files written next to their final location, to appear there together or not at all. */
export interface Stage {
  readonly manifestFile: string;
  readonly policyFile: string;
  /** Directory for keys and the audit log; the folder's existing one, if any. */
  readonly dataDir: string;
  /** Adds initial policy tests, which are based on an answered query. */
  addTests(text: string): void;
  /** Moves everything into place; returns the names of the files, relative to the folder. */
  commit(): readonly string[];
  /** Removes everything that was not committed. */
  discard(): void;
}

export interface StageTexts {
  readonly manifest: string;
  readonly policy: string;
  readonly envExample: string;
}

/** Files that are never overwritten, because their content belongs to the user. */
const KEPT = ['.env.example', 'policy.test.yaml'] as const;

/** Starts writing into `dir`, creating it if necessary. @throws system errors */
export function openStage(dir: string, dataDir: string, texts: StageTexts): Stage {
  const made = !existsSync(dir);
  mkdirSync(dir, { recursive: true });
  const place = mkdtempSync(join(dir, '.osl-init-'));
  const fresh = !existsSync(dataDir);
  const [manifestFile, policyFile] = [join(place, 'manifest.yaml'), join(place, 'policy.yaml')];
  writeFileSync(manifestFile, texts.manifest);
  writeFileSync(policyFile, texts.policy);
  writeFileSync(join(place, KEPT[0]), texts.envExample);
  // For editors: the first line of each file refers to its schema.
  writeFileSync(join(place, 'manifest.schema.json'), `${JSON.stringify(MANIFEST_SCHEMA, null, 2)}\n`);
  writeFileSync(join(place, 'policy.schema.json'), `${JSON.stringify(POLICY_SCHEMA, null, 2)}\n`);
  let over = false;
  return {
    manifestFile,
    policyFile,
    dataDir: fresh ? join(place, 'data') : dataDir,
    addTests(text) {
      writeFileSync(join(place, KEPT[1]), text);
    },
    commit() {
      // INVARIANT: this is synchronous, so that no signal handler runs in between; the manifest comes last.
      const ignored = updateGitignore(dir, dataDir, place);
      if (fresh) renameSync(join(place, 'data'), dataDir);
      const added = KEPT.filter((name) => existsSync(join(place, name)) && !existsSync(join(dir, name)));
      for (const name of [...added, ...FILES]) renameSync(join(place, name), join(dir, name));
      over = true;
      rmSync(place, { recursive: true });
      return [...FILES.toReversed(), ...added, ...(ignored ? ['.gitignore'] : [])];
    },
    discard() {
      if (over) return;
      over = true;
      rmSync(place, { recursive: true, force: true });
      if (made) rmdirSync(dir);
    },
  };
}

/** Adds the keys and the log to .gitignore; returns false if nothing had to be added. */
function updateGitignore(dir: string, dataDir: string, place: string): boolean {
  const inside = relative(dir, dataDir);
  if (inside.startsWith('..')) return false;
  const file = join(dir, '.gitignore');
  const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const lines = new Set(before.split('\n').map((line) => line.trim().replace(/^\/|\/$/g, '')));
  const missing = [inside, '.env'].filter((line) => !lines.has(line));
  if (missing.length === 0) return false;
  const start = before === '' || before.endsWith('\n') ? before : `${before}\n`;
  const next = join(place, 'gitignore');
  if (existsSync(file)) copyFileSync(file, next); // preserves its mode
  const entries = missing.map((line) => (line === inside ? `/${line}/` : line));
  writeFileSync(next, `${start}# keys, audit log and secrets of OSL Gateway\n${entries.join('\n')}\n`);
  renameSync(next, file);
  return true;
}
