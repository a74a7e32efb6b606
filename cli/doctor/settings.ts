import { nearest } from 'osl-compiler';
import { messageOf } from '../../src/base/thrown.js';
import { type Manifest, urlVariable } from '../../src/model/manifest/index.js';
import { SETTINGS, type SettingName, settingsReader } from '../../src/service/settings/table.js';
import { type DoctorFinding, fail, warn } from './finding.js';

const ABOUT = 'settings';
const NAMES = Object.keys(SETTINGS).filter(isSetting);

function isSetting(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name);
}

/** Settings of this process with a value that their type refuses. */
export function faultySettings(): readonly DoctorFinding[] {
  const read = settingsReader(process.env, process.cwd());
  return NAMES.filter((name) => name.startsWith('OSL_')).flatMap((name) => {
    try {
      read(name);
      return [];
    } catch (error) {
      return [fail(ABOUT, messageOf(error))];
    }
  });
}

/** Names of secrets in files of the operator, and names that only tests use. */
const NAMED_ELSEWHERE = /^OSL_TEST_|(_KEY|_SECRET)(_FILE)?$|_SECRET_/;

/** Variables that begin with `OSL_` and that neither the table nor the manifest names: most are misspelt. */
export function unknownSettings(manifest: Manifest | null): readonly DoctorFinding[] {
  const named = namedBy(manifest);
  return Object.keys(process.env)
    .filter((name) => name.startsWith('OSL_') && !isSetting(name) && !NAMED_ELSEWHERE.test(name))
    .filter((name) => !named.some((known) => name.startsWith(known)))
    .map((name) => {
      const near = nearest(name, NAMES);
      const hint = near === null ? '`osl config list` shows every setting' : `perhaps you meant ${near}`;
      return warn(ABOUT, `unknown setting ${name}: it has no effect`, hint);
    });
}

/** Variables that the manifest names; those of a file, a command or a key begin with the same name. */
function namedBy(manifest: Manifest | null): readonly string[] {
  if (manifest === null) return ['OSL_POSTGRES_URL'];
  const { connectors, facets, rerankers } = manifest;
  const models = [...facets.values()].flatMap(({ embedding }) => embedding.endpoint?.urlEnv ?? []);
  return [
    ...[...connectors.values()].map(urlVariable),
    ...models,
    ...[...rerankers.values()].map(({ urlEnv }) => urlEnv),
  ];
}
