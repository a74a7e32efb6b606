import type { WireError } from '../errors.js';
import type { WireNotice } from '../handler.js';
import type { MessageFields, MessageWriter } from '../message-writer.js';
import { Backend } from './types.js';

export function errorResponse(out: MessageWriter, error: WireError): void {
  out.message(Backend.errorResponse, (fields) => {
    report(fields, error);
    if (error.position !== undefined) field(fields, 'P', String(error.position));
    if (error.routine !== undefined) field(fields, 'R', error.routine);
    fields.byte(0);
  });
}

export function noticeResponse(out: MessageWriter, notice: WireNotice): void {
  out.message(Backend.noticeResponse, (fields) => {
    report(fields, notice);
    fields.byte(0);
  });
}

/** S is for people (and would be translated), V for programs. */
function report(fields: MessageFields, said: WireError | WireNotice): void {
  field(fields, 'S', said.severity);
  field(fields, 'V', said.severity);
  field(fields, 'C', said.sqlstate);
  field(fields, 'M', said.message);
  if (said.detail !== undefined) field(fields, 'D', said.detail);
  if (said.hint !== undefined) field(fields, 'H', said.hint);
}

function field(fields: MessageFields, code: string, value: string): void {
  fields.byte(code.charCodeAt(0));
  fields.cstring(value);
}
