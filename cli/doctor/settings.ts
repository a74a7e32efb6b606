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

/** Secrets named in the operator's files, and variables of the tests. */
const NAMED_ELSEWHERE = /^OSL_TEST_|(_KEY|_SECRET)(_FILE)?$|_SECRET_/;

/** Unknown variables that begin with `OSL_`: most are misspelt. */
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
