import { BaseImage, BUILT_IMAGES } from './engine-thread.js';

/** Run by `npm run build`; does nothing if the image exists. The engine's thread ends when the process exits. */
await new BaseImage(BUILT_IMAGES, null).ready();
