declare module '*.css';

/** Of lib.dom only where a browser's types have it: what the page's policy of markup is made with. */
interface Window {
  readonly trustedTypes?: {
    createPolicy(
      name: string,
      rules: { createHTML(text: string): string; createScriptURL(url: string): string },
    ): unknown;
  };
}

interface ImportMeta {
  /** Vite's: the modules that match, each loaded when it is asked for. */
  glob<T>(pattern: string): Readonly<Record<string, () => Promise<T>>>;
}
