/** Fields of an ErrorResponse or NoticeResponse body by type letter. */
export function reportFields(body: Buffer): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  let at = 0;
  while (at < body.length && body[at] !== 0) {
    const end = body.indexOf(0, at + 1);
    if (end < 0) break;
    fields.set(String.fromCharCode(body[at] ?? 0), body.toString('utf8', at + 1, end));
    at = end + 1;
  }
  return fields;
}
