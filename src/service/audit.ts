import { access, constants, stat } from 'node:fs/promises';
import {
  AuditDamaged,
  type AuditLog,
  type AuditObserver,
  type AuditUnavailable,
  causeOf,
  type LogStore,
  openAuditLog,
} from '../../audit/index.js';
import type { Witness, Witnesses } from '../../audit/witness/index.js';
import type { ServiceLog } from '../base/log.js';
import { codeOf, messageOf } from '../base/thrown.js';
import { type AuditRetentionSettings, auditSinkUrl } from './settings/groups.js';
import { readSetting } from './settings/table.js';
import type { Settings } from './settings.js';

interface OpenAudit {
  readonly audit: AuditLog;
  /** Resolves, with the reason, only when no request can be answered any more and the process should end. */
  readonly fatalFailure: Promise<string>;
  /** Never rejects, since a log that has failed cannot be closed cleanly. */
  close(): Promise<void>;
}

/** Opens the audit log; failures and recoveries are logged. */
export async function openAudit(
  { audit: { whenFailed, segmentBytes, sync, sink, keeping } }: Pick<Settings, 'audit'>,
  dir: string,
  tenant: string,
  log: ServiceLog,
): Promise<OpenAudit> {
  const endsProcess = whenFailed === 'exit';
  let endProcess: (reason: string) => void = () => undefined;
  const fatalFailure = new Promise<string>((resolve) => {
    endProcess = resolve;
  });
  const witnesses = await openWitnesses(keeping, log);
  const observer: AuditObserver = {
    failed: (failure) => {
      log.error('the audit log failed: every request is refused', {
        ...failureFields(failure),
        dir,
        next: endsProcess
          ? 'the process ends'
          : 'it goes on by itself once its disk, or its database, is well',
      });
      if (endsProcess) endProcess(`the audit log failed: ${causeOf(failure)}`);
    },
    reopened: (gap) => log.warn('the audit log goes on, with a record of the gap', { ...gap }),
    lost: (reason: AuditDamaged) => {
      log.error('the audit log cannot go on: the disk does not hold what it took', { cause: reason.message });
      endProcess(reason.message);
    },
    kept: (reason: Error) =>
      log.error(
        reason instanceof AuditDamaged
          ? 'older records of the audit log are not what was signed, and stay'
          : 'older records of the audit log could not be archived or removed, and stay',
        { cause: reason.message },
      ),
    ...(witnesses !== null && { signed: (note: string) => witnesses.signed(note) }),
    ...(witnesses !== null && { closed: () => witnesses.close() }),
  };
  if (sync === 'kernel')
    log.warn('audit records are synced after the answers: a power failure may lose those of the last 50 ms', {
      setting: 'OSL_AUDIT_SYNC=kernel',
    });
  const afterFailure = endsProcess ? 'stay' : 'reopen';
  const url = auditSinkUrl(sink);
  const store = url === null ? null : await loadTableStore(url, dir);
  const audit = await openAuditLog({
    dir,
    tenant,
    segmentBytes,
    sync,
    afterFailure,
    observer,
    deadlineMs: DEADLINE_MS,
    ...(keeping.retention !== null && { retention: keeping.retention }),
    ...(store !== null && { store, waits: true }),
  });
  const close = (): Promise<void> =>
    audit
      .close()
      .catch((error: unknown) => log.error('the audit log could not be closed', { error: messageOf(error) }));
  return { audit, fatalFailure, close };
}

/** Returns the reason why the archive of `OSL_AUDIT_ARCHIVE` cannot be used; null if it can be used or is not set. */
export async function archiveFault({ keeping, sink }: Settings['audit']): Promise<string | null> {
  const { archive, retention } = keeping;
  if (archive === null) return null;
  if (sink.table !== null)
    return 'OSL_AUDIT_ARCHIVE has no effect: the audit log is in a database (OSL_AUDIT_SINK)';
  if (retention === null)
    return 'OSL_AUDIT_ARCHIVE has no effect: all records are kept, for OSL_AUDIT_RETENTION_DAYS is 0';
  try {
    if (!(await stat(archive)).isDirectory()) return `OSL_AUDIT_ARCHIVE: ${archive} is not a directory`;
    await access(archive, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return `OSL_AUDIT_ARCHIVE: ${archive} cannot be written to (${codeOf(error)})`;
  }
}

const DEADLINE_MS = 5_000;

async function openWitnesses(
  { witnesses, witnessMs }: AuditRetentionSettings,
  log: ServiceLog,
): Promise<Witnesses | null> {
  if (witnesses.length === 0) return null;
  const { Witnesses: Opened } = await import('../../audit/witness/index.js');
  return new Opened(await configuredWitnesses(witnesses), witnessMs, log);
}

/** Creates the witnesses at these places; they connect when they are used. @throws StartProblem */
export async function configuredWitnesses(places: readonly string[]): Promise<readonly Witness[]> {
  const { witnessAt } = await import('../../audit/witness/index.js');
  const secret = readSetting('OSL_AUDIT_WITNESS_SECRET');
  return places.map((place) => witnessAt(place, process.env, secret));
}

async function loadTableStore(url: () => string, dir: string): Promise<(segmentBytes: number) => LogStore> {
  const { TableStore } = await import('../../audit/table/index.js');
  return (segmentBytes) => new TableStore({ url, dir, segmentBytes, deadlineMs: DEADLINE_MS });
}

function failureFields(failure: AuditUnavailable) {
  const cause = causeOf(failure);
  return { reason: failure.reason, cause: failure.message.includes(cause) ? failure.message : cause };
}
