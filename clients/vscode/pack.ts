/**
 * Builds and packs the extension: `dist/vscode/osl-gateway-<version>.vsix`, a zip of its files and of two files that
 * the format requires. Needs neither the network nor `vsce`, which requires a newer Node than the gateway does.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { zipSync } from 'fflate';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const HERE = join(ROOT, 'clients', 'vscode');
/** Files of the extension that are packed unchanged. */
const FILES = ['package.json', 'language-configuration.json', 'osql.tmLanguage.json', 'README.md'] as const;
/** Media types of the packed files, by file extension. */
const TYPES: Readonly<Record<string, string>> = {
  '.json': 'application/json',
  '.cjs': 'application/javascript',
  '.md': 'text/markdown',
  '.txt': 'text/plain',
  '.vsixmanifest': 'text/xml',
};

/** Members of `package.json` that the archive's own manifest repeats. */
interface Extension {
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  readonly version: string;
  readonly publisher: string;
  readonly categories: readonly string[];
  readonly engines: { readonly vscode: string };
}

/** A file in the archive. */
interface ZipEntry {
  /** Path within the archive, separated by `/`. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Earliest date that the format allows; a fixed date ensures that the same files produce the same archive. */
const DAY = new Date(1980, 0, 1);

/** Packs the extension into `folder` and returns the path of the archive. */
export async function pack(folder: string): Promise<string> {
  const extension = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8')) as Extension; // our own file
  const packedFile = (file: string): ZipEntry => ({
    name: `extension/${file}`,
    bytes: readFileSync(join(HERE, file)),
  });
  const generatedFile = (name: string, text: string): ZipEntry => ({ name, bytes: Buffer.from(text) });
  const entries: readonly ZipEntry[] = [
    generatedFile('extension.vsixmanifest', manifestOf(extension)),
    generatedFile('[Content_Types].xml', contentTypes()),
    ...FILES.map(packedFile),
    { name: 'extension/LICENSE.txt', bytes: readFileSync(join(ROOT, 'LICENSE')) },
    ...(await bundle()),
  ];
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${extension.name}-${extension.version}.vsix`);
  const files = Object.fromEntries(entries.map(({ name, bytes }) => [name, bytes]));
  writeFileSync(file, zipSync(files, { level: 9, mtime: DAY }));
  return file;
}

/** Bundles the extension into one file, and lists the licenses of the bundled packages in a second one. */
async function bundle(): Promise<readonly ZipEntry[]> {
  const { outputFiles, metafile } = await build({
    entryPoints: [join(HERE, 'extension.ts')],
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    external: ['vscode'],
    minify: true,
    legalComments: 'none',
    metafile: true,
    write: false,
    outfile: 'extension.cjs',
    absWorkingDir: ROOT,
  });
  const folders = Object.keys(metafile.inputs).flatMap(
    (file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? [],
  );
  return [
    ...outputFiles.map(({ contents }) => ({ name: 'extension/extension.cjs', bytes: contents })),
    { name: 'extension/LICENCES.txt', bytes: Buffer.from(licencesOf([...new Set(folders)].sort())) },
  ];
}

function licencesOf(folders: readonly string[]): string {
  return folders
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
      const text = ['License.txt', 'LICENSE', 'LICENSE.md']
        .map((file) => readText(join(ROOT, folder, file)))
        .find((t) => t !== null);
      return `${name} ${version} (${license})\n\n${text ?? ''}`;
    })
    .join('\n\n----\n\n');
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return null; // packages use different names for this file
  }
}

function manifestOf({
  name,
  displayName,
  description,
  version,
  publisher,
  categories,
  engines,
}: Extension): string {
  return `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="${name}" Version="${version}" Publisher="${publisher}" />
    <DisplayName>${escapeXml(displayName)}</DisplayName>
    <Description xml:space="preserve">${escapeXml(description)}</Description>
    <Categories>${escapeXml(categories.join(','))}</Categories>
    <License>extension/LICENSE.txt</License>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value="${escapeXml(engines.vscode)}" />
      <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="workspace" />
    </Properties>
  </Metadata>
  <Installation>
    <InstallationTarget Id="Microsoft.VisualStudio.Code" />
  </Installation>
  <Dependencies />
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true" />
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true" />
    <Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true" />
  </Assets>
</PackageManifest>
`;
}

function contentTypes(): string {
  const types = Object.entries(TYPES).map(
    ([ending, type]) => `<Default Extension="${ending}" ContentType="${type}" />`,
  );
  return `<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">${types.join('')}</Types>
`;
}

function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.stdout.write(`${await pack(join(ROOT, 'dist', 'vscode'))}\n`);
