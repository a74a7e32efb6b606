/** Provenance of a release as an in-toto statement with an SLSA v1 predicate: sources, builder and build steps. */
import { sha256 } from './sign.js';

interface ProvenanceInput {
  /** Files of the release, by name. */
  readonly files: ReadonlyMap<string, string>;
  readonly repository: string;
  readonly commit: string;
  readonly started: Date;
  readonly ended: Date;
  /** Parameters of the run; contain no secrets. */
  readonly parameters: Readonly<Record<string, string | boolean>>;
}

const BUILD_TYPE = 'urn:osl-gateway:release:v1';

export function provenanceOf({
  files,
  repository,
  commit,
  started,
  ended,
  parameters,
}: ProvenanceInput): object {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [...files].map(([name, file]) => ({ name, digest: { sha256: sha256(file) } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: { ref: commit, ...parameters },
        internalParameters: { node: process.version, platform: `${process.platform}-${process.arch}` },
        resolvedDependencies: [{ uri: `git+${repository}`, digest: { gitCommit: commit } }],
      },
      runDetails: {
        builder: { id: `${BUILD_TYPE}/local` },
        metadata: { startedOn: started.toISOString(), finishedOn: ended.toISOString() },
      },
    },
  };
}
