import { deflateSync } from 'node:zlib';

/** What a PDF that the tests write may have beside its pages. */
export interface PdfOptions {
  /** An encryption for which nobody has the password. */
  readonly encrypted?: boolean;
}

const ENCRYPTION = `/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <${'ab'.repeat(32)}> /U <${'cd'.repeat(32)}> >> /ID [<00> <00>]`;

/** A PDF whose pages have these lines of Latin-1 text. */
export function pdfOf(pages: readonly (readonly string[])[], { encrypted = false }: PdfOptions = {}): Buffer {
  const kids = pages.map((_, i) => `${4 + 2 * i} 0 R`).join(' ');
  const objects = [
    Buffer.from('<< /Type /Catalog /Pages 2 0 R >>'),
    Buffer.from(`<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`),
    Buffer.from('<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>'),
    ...pages.flatMap((lines, i) => [pageOf(5 + 2 * i), contentOf(lines)]),
  ];
  const parts = [Buffer.from('%PDF-1.4\n')];
  const starts: number[] = [];
  let length = parts[0]?.length ?? 0;
  for (const [i, object] of objects.entries()) {
    const whole = Buffer.concat([Buffer.from(`${i + 1} 0 obj\n`), object, Buffer.from('\nendobj\n')]);
    starts.push(length);
    length += whole.length;
    parts.push(whole);
  }
  const entries = starts.map((at) => `${`${at}`.padStart(10, '0')} 00000 n \n`).join('');
  const size = objects.length + 1;
  const trailer = `trailer << /Size ${size} /Root 1 0 R ${encrypted ? ENCRYPTION : ''} >>\nstartxref\n${length}\n%%EOF\n`;
  return Buffer.concat([...parts, Buffer.from(`xref\n0 ${size}\n0000000000 65535 f \n${entries}${trailer}`)]);
}

function pageOf(content: number): Buffer {
  const resources = '/Resources << /Font << /F1 3 0 R >> >>';
  return Buffer.from(
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] ${resources} /Contents ${content} 0 R >>`,
  );
}

function contentOf(lines: readonly string[]): Buffer {
  const shown = lines.map((line) => `(${line.replace(/[\\()]/g, '\\$&')}) Tj T*`).join(' ');
  const data = deflateSync(Buffer.from(`BT /F1 12 Tf 14 TL 72 720 Td ${shown} ET`, 'latin1'));
  const head = Buffer.from(`<< /Length ${data.length} /Filter /FlateDecode >>\nstream\n`);
  return Buffer.concat([head, data, Buffer.from('\nendstream')]);
}
