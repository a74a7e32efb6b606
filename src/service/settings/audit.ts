import { isAbsolute } from 'node:path';
import type { Retention } from '../../../policy/audit/index.js';
import { StartProblem } from '../../base/start-problem.js';
import { type ControlPlace, controlUrl } from '../../control/url.js';
import { controlPlace } from './control.js';

/** For how long records are kept, and who keeps checkpoints beside us. */
export interface AuditKeeping {
  /** Null: for ever. */
  readonly retention: Retention | null;
  /** The directory of `OSL_AUDIT_ARCHIVE`, also where no setting lets records go there. */
  readonly archive: string | null;
  /** Places of witnesses, as the environment names them. */
  readonly witnesses: readonly string[];
  readonly witnessMs: number;
}

/** Where the records of the audit log go. Plain data: workers are told of it. */
export interface AuditSink {
  /** Null for segment files in the data directory; else the database whose schema `osl_audit` has them. */
  readonly table: { readonly place: ControlPlace; readonly variable: string | undefined } | null;
}

/** The URL of the database of the log as it stands now, each time it is asked for; null where there is none. */
export function sinkUrl({ table }: AuditSink): (() => string) | null {
  return table === null ? null : () => controlUrl(table.place, table.variable);
}

type Environment = Readonly<Record<string, string | undefined>>;

const AUDIT_URL = 'OSL_AUDIT_URL';
const DAY_MS = 86_400_000;

/** @param integer reads a whole number of the environment; @throws StartProblem */
export function auditKeeping(
  env: Environment,
  path: (value: string) => string,
  integer: (name: string, fallback: number, least: number, most: number) => number,
): AuditKeeping {
  const days = integer('OSL_AUDIT_RETENTION_DAYS', 0, 0, 36_500);
  const named = env['OSL_AUDIT_ARCHIVE'] ?? '';
  const archive = named === '' ? null : path(named);
  const witnesses = (env['OSL_AUDIT_WITNESS'] ?? '')
    .split(',')
    .map((place) => place.trim())
    .filter((place) => place !== '')
    .map((place) => (/^[\w+.-]+:/.test(place) || isAbsolute(place) ? place : path(place)));
  return Object.freeze({
    retention: days === 0 ? null : { ms: days * DAY_MS, archive },
    archive,
    witnesses,
    witnessMs: integer('OSL_AUDIT_WITNESS_SECONDS', 60, 1, 86_400) * 1_000,
  });
}

/** @throws StartProblem */
export function auditSink(env: Environment, path: (value: string) => string): AuditSink {
  const sink = env['OSL_AUDIT_SINK'] ?? '';
  if (sink === '' || sink === 'files') return Object.freeze({ table: null });
  if (sink !== 'postgres')
    throw new StartProblem(`OSL_AUDIT_SINK must be files or postgres, not \`${sink}\``);
  if ((env['OSL_LINEAGE'] ?? '') !== '') {
    throw new StartProblem(
      'OSL_LINEAGE is told from segment files: it does not go with OSL_AUDIT_SINK=postgres',
    );
  }
  const own = controlPlace(env, path, AUDIT_URL);
  const place: ControlPlace | null = own ?? controlPlace(env, path);
  if (place === null)
    throw new StartProblem(
      'OSL_AUDIT_SINK=postgres needs OSL_AUDIT_URL, OSL_AUDIT_URL_FILE or OSL_CONTROL_URL',
    );
  const variable = own === null ? undefined : AUDIT_URL;
  return Object.freeze({ table: { place, variable } });
}
