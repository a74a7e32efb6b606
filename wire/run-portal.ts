import { encodedRows, type ResultShape } from './encoded-rows.js';
import type { FetchResult, Portal } from './handler.js';
import { noticeResponse } from './messages/error-response.js';
import { copyDone, copyOutResponse } from './messages/results.js';
import { parameterStatus } from './messages/startup.js';
import type { SocketWriter } from './output.js';

/** Everything an execution sends between RowDescription and CommandComplete. COPY gives all rows at once. */
export async function runPortal(
  shape: ResultShape,
  fetch: Portal['fetch'],
  maxRows: number,
  output: SocketWriter,
): Promise<FetchResult> {
  const out = output.messages;
  const { copy } = shape;
  const rows = out.encoding === null ? output : encodedRows(output, shape, out.encoding);
  if (copy !== null) copyOutResponse(out, copy);
  const result = await fetch(copy === null ? maxRows : 0, rows);
  if (copy !== null) copyDone(out);
  for (const notice of result.notices ?? []) noticeResponse(out, notice);
  for (const [name, value] of result.parameterChanges ?? []) parameterStatus(out, name, value);
  return result;
}
