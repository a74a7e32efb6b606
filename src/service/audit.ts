import {
  type AuditDamaged,
  type AuditLog,
  type AuditObserver,
  type AuditUnavailable,
  causeOf,
  openAuditLog,
} from '../../policy/audit/index.js';
import type { ServiceLog } from '../base/log.js';
import type { Settings } from './settings.js';

export interface OpenAudit {
  readonly audit: AuditLog;
  /** Resolves, with why, when nothing can be answered any more and the process should end; else never. */
  readonly over: Promise<string>;
}

/** The audit log as the settings have it; what becomes of it is told to the operator at once. */
export async function openAudit(
  { audit: { whenFailed, segmentBytes } }: Pick<Settings, 'audit'>,
  dir: string,
  tenant: string,
  log: ServiceLog,
): Promise<OpenAudit> {
  const ends = whenFailed === 'exit';
  let end: (why: string) => void = () => undefined;
  const over = new Promise<string>((resolve) => {
    end = resolve;
  });
  const observer: AuditObserver = {
    failed: (failure) => {
      log.error('the audit log failed: every request is refused', {
        ...failureFields(failure),
        dir,
        next: ends ? 'the process ends' : 'it goes on by itself once the disk is well',
      });
      if (ends) end(`the audit log failed: ${causeOf(failure)}`);
    },
    reopened: (gap) => log.warn('the audit log goes on, with a record of the gap', { ...gap }),
    lost: (reason: AuditDamaged) => {
      log.error('the audit log cannot go on: the disk does not hold what it took', { cause: reason.message });
      end(reason.message);
    },
  };
  const afterFailure = ends ? 'stay' : 'reopen';
  const audit = await openAuditLog({ dir, tenant, segmentBytes, afterFailure, observer });
  return { audit, over };
}

function failureFields(failure: AuditUnavailable) {
  return { reason: failure.reason, cause: causeOf(failure) };
}
