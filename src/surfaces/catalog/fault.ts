import { ForeignFault } from '../../ask/index.js';
import type { ReplyReport } from './reply.js';

/** A failed catalog statement. The error may be shown in full. */
export class CatalogFault extends ForeignFault {
  override readonly name = 'CatalogFault';
  readonly report: ReplyReport;

  constructor(report: ReplyReport) {
    super(report.message);
    this.report = report;
  }

  get code(): string {
    return this.report.sqlstate;
  }
}

export function fault(sqlstate: string, message: string, hint: string | null = null): CatalogFault {
  return new CatalogFault({ severity: 'ERROR', sqlstate, message, detail: null, hint, position: null });
}
