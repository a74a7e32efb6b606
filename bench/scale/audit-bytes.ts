import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openAuditLog } from '../../audit/index.js';
import { type Measure, measure } from '../report.js';
import { entryAbout } from '../support/audit-entry.js';

const QUESTIONS = 2_000;

/** Disk space that the log uses per query: a decision and its outcome, for one caller and one entity. */
export async function auditBytes(): Promise<Measure> {
  const dir = mkdtempSync(join(tmpdir(), 'osl-audit-bytes-'));
  try {
    const sizes: number[] = [];
    for (let round = 0; round < 2; round++) {
      const log = await openAuditLog({ dir, tenant: 'bench', segmentBytes: 4 * 1024 * 1024 });
      // Closing truncates the unused space of a segment.
      for (let i = 0; round > 0 && i < QUESTIONS; i++) await asked(log);
      await log.close();
      sizes.push(segmentBytes(dir));
    }
    const [before = 0, after = 0] = sizes;
    return measure(
      'scale.audit.bytes_a_question',
      'bytes',
      [(after - before) / QUESTIONS],
      'a decision and its outcome',
    );
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function asked(log: Awaited<ReturnType<typeof openAuditLog>>): Promise<void> {
  const id = randomUUID();
  await log.append({ ...entryAbout('osl.entities.account', 'decision', id), decision: 'allow' });
  await log.append({
    ...entryAbout('osl.entities.account', 'outcome', id),
    outcome: 'ok',
    rows: 1,
    duration_us: 250,
  });
}

function segmentBytes(dir: string): number {
  const segments = readdirSync(dir).filter((name) => /^segment-\d+\.log$/.test(name));
  return segments.reduce((sum, name) => sum + statSync(join(dir, name)).size, 0);
}
