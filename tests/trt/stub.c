/* What the Python bindings of TensorRT ask of its libraries while they are imported. With this in the libraries'
   place every class and function can be looked at; nothing can be called. */
void *createInferBuilder_INTERNAL(void *logger, int version) { return 0; }
void *createInferRefitter_INTERNAL(void *engine, void *logger, int version) { return 0; }
void *createInferRuntime_INTERNAL(void *logger, int version) { return 0; }
void *createNvOnnxParserRefitter_INTERNAL(void *refitter, void *logger, int version) { return 0; }
void *createNvOnnxParser_INTERNAL(void *network, void *logger, int version) { return 0; }
void *getBuilderPluginRegistry(int capability) { return 0; }
void *getPluginRegistry(void) { return 0; }
int getNvOnnxParserVersion(void) { return 0; }
int initLibNvInferPlugins(void *logger, const char *space) { return 0; }
