import type { WireError } from '../errors.js';
import type { WireNotice } from '../handler.js';
import type { MessageWriter } from '../message-writer.js';
import { Backend } from './types.js';

export function errorResponse(out: MessageWriter, error: WireError): void {
  out.begin(Backend.errorResponse);
  fields(out, error);
  if (error.position !== undefined) field(out, 'P', String(error.position));
  out.byte(0);
  out.end();
}

export function noticeResponse(out: MessageWriter, notice: WireNotice): void {
  out.begin(Backend.noticeResponse);
  fields(out, notice);
  out.byte(0);
  out.end();
}

/** S is for people (and would be translated), V for programs. */
function fields(out: MessageWriter, report: WireError | WireNotice): void {
  field(out, 'S', report.severity);
  field(out, 'V', report.severity);
  field(out, 'C', report.sqlstate);
  field(out, 'M', report.message);
  if (report.detail !== undefined) field(out, 'D', report.detail);
  if (report.hint !== undefined) field(out, 'H', report.hint);
}

function field(out: MessageWriter, code: string, value: string): void {
  out.byte(code.charCodeAt(0));
  out.cstring(value);
}
