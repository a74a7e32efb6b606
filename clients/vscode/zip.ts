import { crc32, deflateRawSync } from 'node:zlib';

/** A file of an archive. */
export interface ZipEntry {
  /** With `/` between its parts. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** 1980-01-01, the first day that the format has: the same files are the same archive. */
const DAY = 0x0021;
/** Version 2.0: deflate. Names are UTF-8. */
const VERSION = 20;
const UTF8_NAMES = 0x0800;
const DEFLATE = 8;

/** A zip archive. Source: PKWARE APPNOTE 6.3.9; no entry above 4 GiB, no more than 65,535 of them. */
export function zip(entries: readonly ZipEntry[]): Buffer {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, bytes } of entries) {
    const packed = deflateRawSync(bytes, { level: 9 });
    const common = commonFields(name, bytes, packed);
    const local = Buffer.concat([uint32(0x04034b50), common, Buffer.from(name)]);
    directory.push(
      // Made by the same version; no comment, first disk, no attributes.
      Buffer.concat([
        uint32(0x02014b50),
        uint16(VERSION),
        common,
        Buffer.alloc(10),
        uint32(offset),
        Buffer.from(name),
      ]),
    );
    bodies.push(local, packed);
    offset += local.length + packed.length;
  }
  const listed = Buffer.concat(directory);
  const count = uint16(entries.length);
  const end = [
    uint32(0x06054b50),
    Buffer.alloc(4),
    count,
    count,
    uint32(listed.length),
    uint32(offset),
    uint16(0),
  ];
  return Buffer.concat([...bodies, listed, ...end]);
}

/** What a file's own header and the directory both say of it, from the version needed to the length of extra fields. */
function commonFields(name: string, bytes: Uint8Array, packed: Buffer): Buffer {
  return Buffer.concat([
    ...[VERSION, UTF8_NAMES, DEFLATE, 0, DAY].map(uint16),
    ...[crc32(bytes), packed.length, bytes.length].map(uint32),
    ...[Buffer.byteLength(name), 0].map(uint16),
  ]);
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
