/** Headers that are new with each response. */
const RANDOM = ['date', 'x-request-id'];

/** All that a client receives: status, headers, and the body. */
export function partsOf({ status, headers }: Response, text: string): readonly string[] {
  const kept = [...headers].filter(([name]) => !RANDOM.includes(name));
  return [String(status), ...kept.map((header) => header.join(': ')), text];
}
