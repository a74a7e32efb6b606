import { isUtf8 } from 'node:buffer';
import { error, protocolViolation } from './errors.js';
import type { Bind, FormatCode, WireStatement } from './handler.js';
import type { BindMessage } from './messages/extended.js';

/**
 * Fits a Bind message to its statement: no format means text for all, one stands for all, else one each.
 * 08P01 where a count does not fit, 22021 for a text value that is not UTF-8 or holds a NUL.
 */
export function fitBind(
  message: BindMessage,
  statement: Pick<WireStatement, 'parameterTypes' | 'columns'> | null,
): Bind {
  const { statement: name, values } = message;
  const parameters = statement?.parameterTypes.length ?? 0;
  const columns = statement?.columns?.length ?? 0;
  const given = message.parameterFormats.length;
  if (given > 1 && given !== values.length) {
    throw protocolViolation(`bind message has ${given} parameter formats but ${values.length} parameters`);
  }
  if (values.length !== parameters) {
    throw protocolViolation(
      `bind message supplies ${values.length} parameters, but prepared statement "${name}" requires ${parameters}`,
    );
  }
  const wanted = message.resultFormats.length;
  if (wanted > 1 && wanted !== columns) {
    throw protocolViolation(`bind message has ${wanted} result formats but query has ${columns} columns`);
  }
  const parameterFormats = expand(message.parameterFormats, parameters);
  values.forEach((value, i) => {
    if (value !== null && parameterFormats[i] === 0) requireText(value);
  });
  return { parameterFormats, parameters: values, resultFormats: expand(message.resultFormats, columns) };
}

function expand(formats: readonly FormatCode[], count: number): readonly FormatCode[] {
  if (formats.length === count) return formats;
  return new Array<FormatCode>(count).fill(formats[0] ?? 0);
}

function requireText(value: Buffer): void {
  if (isUtf8(value) && !value.includes(0)) return;
  throw error('22021', 'invalid byte sequence for encoding "UTF8"');
}
