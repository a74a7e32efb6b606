import type { Retention } from '../../../audit/index.js';
import { type ControlPlace, controlUrl } from '../../base/control/url.js';
import { StartProblem } from '../../base/start-problem.js';
import { databasePlace } from './control.js';
import type { ReadSetting } from './table.js';

/** Retention of records, and witnesses of checkpoints. */
export interface AuditKeeping {
  /** Null: forever. */
  readonly retention: Retention | null;
  /** `OSL_AUDIT_ARCHIVE`, even if nothing is ever removed. */
  readonly archive: string | null;
  /** As in the environment. */
  readonly witnesses: readonly string[];
  readonly witnessMs: number;
}

/** Storage of the audit log. Plain data, sent to workers. */
export interface AuditSink {
  /** Null: segment files; else the database with schema `osl_audit`. */
  readonly table: { readonly place: ControlPlace; readonly variable: string | undefined } | null;
}

/** Reader of the database URL, whose file may change; null for files. */
export function sinkUrl({ table }: AuditSink): (() => string) | null {
  return table === null ? null : () => controlUrl(table.place, table.variable);
}

/** @throws StartProblem */
export function auditKeeping(read: ReadSetting): AuditKeeping {
  const ms = read('OSL_AUDIT_RETENTION_DAYS');
  const archive = read('OSL_AUDIT_ARCHIVE');
  return Object.freeze({
    retention: ms === 0 ? null : { ms, archive },
    archive,
    witnesses: read('OSL_AUDIT_WITNESS'),
    witnessMs: read('OSL_AUDIT_WITNESS_SECONDS'),
  });
}

/** @throws StartProblem */
export function auditSink(read: ReadSetting): AuditSink {
  if (read('OSL_AUDIT_SINK') === 'files') return Object.freeze({ table: null });
  if (read('OSL_LINEAGE') !== null)
    throw new StartProblem(
      'OSL_LINEAGE is read from segment files: it cannot be used with OSL_AUDIT_SINK=postgres',
    );
  const own = databasePlace(read, 'OSL_AUDIT_URL');
  const place = own ?? databasePlace(read, 'OSL_CONTROL_URL');
  if (place === null)
    throw new StartProblem(
      'OSL_AUDIT_SINK=postgres needs OSL_AUDIT_URL, OSL_AUDIT_URL_FILE or OSL_CONTROL_URL',
    );
  return Object.freeze({ table: { place, variable: own === null ? undefined : 'OSL_AUDIT_URL' } });
}
