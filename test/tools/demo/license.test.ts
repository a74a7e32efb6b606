import { test } from 'tap';
import { licenseOf } from '../../../cli/demo/license.js';

const CASES: readonly (readonly [stated: string | null, license: string, license_class: string])[] = [
  ['MIT', 'MIT', 'permissive'],
  ['mit', 'MIT', 'permissive'],
  ['MIT License', 'MIT', 'permissive'],
  ['ISC', 'ISC', 'permissive'],
  ['0BSD', '0BSD', 'permissive'],
  ['BSD-3-Clause', 'BSD-3-Clause', 'permissive'],
  ['BSD', 'BSD', 'permissive'],
  ['Apache 2.0', 'Apache-2.0', 'permissive'],
  ['Apache-2.0 WITH LLVM-exception', 'Apache-2.0 WITH LLVM-exception', 'permissive'],
  ['(MIT OR Apache-2.0)', 'MIT OR Apache-2.0', 'permissive'],
  ['(WTFPL OR MIT)', 'WTFPL OR MIT', 'permissive'],
  ['MIT or GPL-3.0-only', 'MIT OR GPL-3.0-only', 'permissive'],
  ['MIT AND GPL-3.0-only', 'MIT AND GPL-3.0-only', 'copyleft'],
  ['MIT AND (BSD-2-Clause OR GPL-2.0)', 'MIT AND (BSD-2-Clause OR GPL-2.0)', 'permissive'],
  ['MIT AND Zlib', 'MIT AND Zlib', 'other'],
  ['LGPL-2.1+', 'LGPL-2.1+', 'copyleft'],
  ['MPL-2.0', 'MPL-2.0', 'copyleft'],
  ['CC-BY-SA-4.0', 'CC-BY-SA-4.0', 'copyleft'],
  ['CC-BY-3.0', 'CC-BY-3.0', 'other'],
  ['BlueOak-1.0.0', 'BlueOak-1.0.0', 'other'],
  ['MITNFA', 'MITNFA', 'other'],
  ['UNLICENSED', 'UNLICENSED', 'other'],
  ['LicenseRef-ours', 'LicenseRef-ours', 'unknown'],
  ['SEE LICENSE IN LICENSE.md', 'SEE LICENSE IN LICENSE.md', 'unknown'],
  ['MIT OR', 'MIT OR', 'unknown'],
  ['(MIT', '(MIT', 'unknown'],
  ["MIT'; drop table", "MIT'; drop table", 'unknown'],
  [null, 'UNKNOWN', 'unknown'],
];

test('licences are normalised and classed', async (t) => {
  for (const [stated, license, license_class] of CASES) {
    t.strictSame(licenseOf(stated), { license, license_class }, `${stated}`);
  }
  t.equal(licenseOf('('.repeat(100_000)).license_class, 'unknown');
});
