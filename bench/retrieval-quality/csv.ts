/** Parses RFC 4180 text into records keyed by the names in the header. */
export function parseCsv(text: string): readonly ReadonlyMap<string, string>[] {
  const [header = [], ...rows] = [...csvRows(text)];
  return rows.map((row) => new Map(header.map((name, i): [string, string] => [name, row[i] ?? ''])));
}

function* csvRows(text: string): Generator<readonly string[]> {
  const field = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r?\n|$)/gy;
  let row: string[] = [];
  for (let match = field.exec(text); match !== null; match = field.exec(text)) {
    const [, raw = '', end = ''] = match;
    row.push(raw.startsWith('"') ? raw.slice(1, -1).replaceAll('""', '"') : raw);
    if (end === ',') continue;
    if (row.length > 1 || row[0] !== '') yield row;
    if (field.lastIndex >= text.length) return;
    row = [];
  }
}
