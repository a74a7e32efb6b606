import { columnLineage, compile, type Influence, ready } from 'osl-compiler';
import { version } from '../../src/base/package-root.js';
import { headIn } from '../../src/model/versions/versions.js';
import { accessOfChain } from '../../src/service/lineage/description.js';
import { namespaceOf } from '../../src/service/lineage/lineage.js';
import { columnLineageFacet, producerOf } from '../../src/service/lineage/openlineage.js';
import { loadModel, publishedDir } from '../../src/service/model.js';
import { queryText } from '../ask.js';
import { compiled } from '../compiled.js';
import { usage } from '../exit.js';
import { type ServerFlags, settingsOfModel } from '../flags.js';
import { print, printJson, visible } from '../output.js';

interface ShowFlags extends ServerFlags {
  readonly subject?: string;
  readonly chain?: readonly string[];
  readonly sql?: true;
}

export async function runShow(argument: string | undefined, flags: ShowFlags): Promise<void> {
  const chain = flags.chain ?? (flags.subject === undefined ? [] : [flags.subject]);
  if (chain.length === 0) throw usage('name the caller: --subject user:analyst');
  const text = await queryText(argument);
  const settings = settingsOfModel(flags);
  await ready();
  const published = flags.dataDir === undefined ? null : await headIn(publishedDir(settings));
  const { manifest, snapshot } = await loadModel(settings.manifestFile, settings.policyFile, published);
  const stranger = chain.find((name) => snapshot?.subjects.has(name) !== true);
  if (snapshot === null || stranger !== undefined)
    throw usage(`subject \`${stranger}\` is not in the policy`);
  const plan = compiled(() =>
    compile(text, manifest.catalog, accessOfChain(chain, snapshot, manifest), {
      world: flags.sql === true ? 'physical' : 'semantic',
    }),
  );
  const { outputs, rows } = columnLineage(plan);
  if (flags.json) {
    const namespace = namespaceOf({ namespace: null }, snapshot.tenant);
    printJson(columnLineageFacet(outputs, rows, { producer: producerOf(version()), namespace }));
    return;
  }
  for (const { name, inputs } of outputs) report(name, inputs);
  report('(which rows, and their order)', rows);
}

function report(name: string, inputs: readonly Influence[]): void {
  print(visible(name));
  if (inputs.length === 0) print('  no column');
  for (const { object, column, transformations } of inputs) {
    const ways = transformations.map((t) =>
      t.type === 'DIRECT'
        ? `${t.subtype}${t.masking ? ', masking' : ''}`
        : `${t.subtype}${t.policy ? ', by policy' : ''}`,
    );
    print(visible(`  ${object}.${column}  ${ways.join('; ')}`));
  }
}
