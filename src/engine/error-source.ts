import type { QueryError } from 'osl-compiler';
import type { UpstreamError } from './upstream-report.js';

/** Properties of a server that explain its errors. */
export interface ErrorSource {
  /** `statement_timeout` of its sessions, in seconds. */
  readonly backstopSeconds: number;
  /** Explains an error that only this kind of server raises; null for every other error. */
  readonly refusalOf: (error: Pick<UpstreamError, 'sqlstate' | 'message'>) => QueryError | null;
}
