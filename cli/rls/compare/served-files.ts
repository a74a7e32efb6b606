import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { openService } from '../../../src/service/open.js';
import type { Service } from '../../../src/service/service.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { openIssuer } from '../../issuer.js';
import { operatorLog } from '../../log.js';

/** Files of an import, with callers who are no subjects of the policy yet. */
export interface ServedFiles {
  readonly manifestFile: string;
  readonly policyFile: string;
  /** Subjects of the policy, each with `ceiling` and `attributes`. */
  readonly subjects: readonly object[];
  /** Most rows of an answer. */
  readonly maxRows: number;
  /** Members that replace those of the manifest. */
  readonly manifest?: Readonly<Record<string, unknown>>;
}

export interface OpenedFiles {
  readonly service: Service;
  /** A token of a subject, by its index. */
  token(subject: number): Promise<string>;
}

/** Opens a service on the files in this process, and removes all that it wrote afterwards. */
export async function withServedFiles(
  files: ServedFiles,
  work: (opened: OpenedFiles) => Promise<void>,
): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'osl-rls-'));
  try {
    const nameOf = (i: number): string => `caller:${i + 1}`;
    const subjects = Object.fromEntries(files.subjects.map((subject, i) => [nameOf(i), subject]));
    const policyFile = join(dir, 'policy.yaml');
    writeWith(files.policyFile, policyFile, { subjects, limits: { query: 1_000_000 } });
    const manifestFile = files.manifest === undefined ? files.manifestFile : join(dir, 'manifest.yaml');
    if (files.manifest !== undefined) writeWith(files.manifestFile, manifestFile, files.manifest);
    // Only the connectors' variables are those of this process.
    const settings = settingsFrom({ OSL_MAX_ROWS: `${files.maxRows}` }, dir, {
      manifestFile,
      policyFile,
      dataDir: join(dir, 'data'),
    });
    const open = await openService(settings, operatorLog());
    try {
      const issuer = await openIssuer(settings, policyFile);
      await work({
        service: open.service,
        token: async (i) => (await issuer.mint({ subject: nameOf(i) })).token,
      });
    } finally {
      await open.close();
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function writeWith(from: string, to: string, members: Readonly<Record<string, unknown>>): void {
  const document: unknown = parse(readFileSync(from, 'utf8'));
  writeFileSync(to, stringify({ ...Object(document), ...members }));
}
