declare module '*.css';

/** Trusted Types API, used to create the page's policy; undefined in browsers that do not support it. */
interface Window {
  readonly trustedTypes?: {
    createPolicy(
      name: string,
      rules: { createHTML(text: string): string; createScriptURL(url: string): string },
    ): unknown;
  };
}

interface ImportMeta {
  /** Provided by Vite: the modules that match `pattern`, each loaded on demand. */
  glob<T>(pattern: string): Readonly<Record<string, () => Promise<T>>>;
}

declare module 'cytoscape-fcose' {
  import type { Ext } from 'cytoscape';

  const fcose: Ext;
  // biome-ignore lint/style/noDefaultExport: the package exports it this way
  export default fcose;
}
